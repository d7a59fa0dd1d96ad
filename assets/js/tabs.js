() => {
  // The chosen tab is written into the address (?tab=runs), so that a link or a reload finds it.
  document.getElementById("sd-tabs")?.addEventListener("click", ({ target }) => {
    const name = /^sd-tab-([a-z]+)-button$/.exec(target.closest?.("button[role=tab]")?.id ?? "")?.[1];
    if (!name) return;
    const address = new URL(window.location.href);
    if (name === "race") address.searchParams.delete("tab");
    else address.searchParams.set("tab", name);
    window.history.replaceState(null, "", address);
  });
};
