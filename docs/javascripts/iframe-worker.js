// Browsers start no worker from a file, and the search of the site runs in one. Where a page is opened as a file, the worker's
// script runs in a hidden frame instead. "iframe-worker" in this file's name keeps the builder from loading one from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.postMessage = (data) => setTimeout(() => this.emit(new MessageEvent("message", { data })));
      this.ready = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = () => resolve(inside);
        script.onerror = reject;
        inside.document.write("<body></body>");
        inside.document.close();
        inside.document.body.append(script);
      });
      this.ready.catch(() => this.emit(new ErrorEvent("error", { message: `cannot load ${url}` })));
    }

    emit(event) {
      this[`on${event.type}`]?.(event);
      this.dispatchEvent(event);
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })), () => {});
    }

    terminate() {
      this.frame.remove();
    }
  };
}
