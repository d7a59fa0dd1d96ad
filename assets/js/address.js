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
  if (address.href !== window.location.href) window.history.replaceState(null, "", address);
}
