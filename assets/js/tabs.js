() => {
  // ?tab=NAME opens that tab, and choosing one writes it into the address, so that a link or a reload finds it.
  const bar = document.getElementById("sd-tabs");
  const button = (name) => document.getElementById(`sd-tab-${name}-button`);
  const asked = new URLSearchParams(window.location.search).get("tab");
  if (asked && /^[a-z]+$/.test(asked)) button(asked)?.click();
  bar?.addEventListener("click", ({ target }) => {
    const name = /^sd-tab-([a-z]+)-button$/.exec(target.closest?.("button[role=tab]")?.id ?? "")?.[1];
    if (!name) return;
    const address = new URL(window.location.href);
    if (name === "race") address.searchParams.delete("tab");
    else address.searchParams.set("tab", name);
    window.history.replaceState(null, "", address);
  });
};
