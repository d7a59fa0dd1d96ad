({ naive }) => {
  // Notes [ms since 1970, highest token number] once per paint, and the long tasks. Tokens look like " w123,".
  window.seen = { standard: [], speculative: [] };
  window.longTasks = [];
  new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((e) => e.duration))).observe({
    type: "longtask",
  });
  const now = () => performance.timeOrigin + performance.now();
  // A message posted from a frame's callback is handled after that frame was painted.
  const afterPaint = (then) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = then;
    channel.port2.postMessage(0);
  };
  for (const side of Object.keys(window.seen)) {
    const root = document.querySelector(naive ? `#naive-${side}` : `[data-side="${side}"] [data-role="output"]`);
    const last = () => {
      const blocks = naive ? root.querySelector(".prose") : root;
      const end = blocks?.lastElementChild;
      const text = `${end?.previousElementSibling?.textContent ?? ""}${end?.textContent ?? ""}`;
      return Number(/w(\d+),[^,]*$/.exec(text)?.[1] ?? -1);
    };
    let most = -1;
    const note = (index) => () => window.seen[side].push([now(), index]);
    new MutationObserver(() => {
      const index = last();
      if (index <= most) return;
      most = index;
      // Our page writes inside a frame; Gradio writes in a task, so its pixels come with the next frame.
      if (naive) requestAnimationFrame(() => afterPaint(note(index)));
      else afterPaint(note(index));
    }).observe(root, { subtree: true, childList: true, characterData: true });
  }
};
