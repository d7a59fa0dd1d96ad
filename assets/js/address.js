(value) => {
  // The address names the run on the screen, so that a reload or a link finds it again.
  let shown = null;
  try {
    shown = JSON.parse(value || "{}");
  } catch {
    return;
  }
  if (shown.loop) return;
  const address = new URL(window.location.href);
  if (shown.run) address.searchParams.set("run", shown.run);
  else address.searchParams.delete("run");
  // On a phone the race is below the form: bring it into view.
  if (shown.run && window.innerWidth < 900) document.getElementById("sd-stage")?.scrollIntoView({ block: "start" });
  if (address.href !== window.location.href) window.history.replaceState(null, "", address);
};
