"""A headless Chromium, driven over WebDriver with nothing but Python's standard library.

`with Browser(size) as b: b.open(path); b.run("return 1")`. Every call waits for its answer; Chromium and its driver end
with the block, whatever happens.
"""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request


def find_chromium():
    """The paths of chromium and its driver, or None."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Browser:
    def __init__(self, width=1440, height=1500):
        self.browser, self.driver_path = find_chromium()
        self.port = free_port()
        self.size = (width, height)

    def __enter__(self):
        self.profile = tempfile.mkdtemp()
        self.driver = subprocess.Popen([self.driver_path, f"--port={self.port}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.wait_for_driver()
            self.start_session()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.end()

    def end(self):
        self.driver.terminate()
        self.driver.wait(10)
        shutil.rmtree(self.profile, ignore_errors=True)

    def wait_for_driver(self):
        for _ in range(1200):
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("chromedriver does not listen")

    def start_session(self):
        # A container's root has no sandbox of its own and little shared memory.
        options = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   f"--window-size={self.size[0]},{self.size[1]}", f"--user-data-dir={self.profile}"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        wanted = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
                  "goog:chromeOptions": {"binary": self.browser, "args": options}}
        self.session = None
        answer = self.call("POST", "", {"capabilities": {"alwaysMatch": wanted}}, at="/session")
        self.session = answer["sessionId"]

    def call(self, method, path, body=None, at=None):
        url = f"http://127.0.0.1:{self.port}" + (at or f"/session/{self.session}{path}")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, path):
        self.call("POST", "/url", {"url": "file://" + os.path.abspath(path)})

    def run(self, script, *args):
        """The value of a script's `return`."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def settle(self):
        """Two frames later everything that was asked for is drawn."""
        self.call("POST", "/execute/async", {"script": "const done = arguments[0];"
                                             "requestAnimationFrame(() => requestAnimationFrame(() => done(1)))", "args": []})

    def pointer(self, *steps):
        """('move', x, y), ('down',), ('up',) in viewport pixels."""
        kinds = {"move": "pointerMove", "down": "pointerDown", "up": "pointerUp"}
        actions = []
        for step in steps:
            action = {"type": kinds[step[0]]}
            if step[0] == "move":
                action |= {"x": round(step[1]), "y": round(step[2]), "duration": 20}
            else:
                action["button"] = 0
            actions.append(action)
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})
        self.settle()

    def wheel(self, x, y, delta):
        self.call("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": delta, "duration": 10}]}]})
        self.settle()

    def keys(self, text):
        """Types; special keys are WebDriver's code points, e.g. "\\ue007" for Enter."""
        actions = [a for c in text for a in ({"type": "keyDown", "value": c}, {"type": "keyUp", "value": c})]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})
        self.settle()

    def media(self, scheme):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def cdp(self, command, **params):
        """A command of the DevTools protocol."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def watch_cpu(self):
        """Processor time of the page from here on, whatever else the machine does."""
        self.cdp("Performance.disable")
        self.cdp("Performance.enable", timeDomain="threadTicks")

    def cpu_seconds(self):
        metrics = self.cdp("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    def console(self):
        """What the page has logged or failed at since the last call."""
        return self.call("POST", "/se/log", {"type": "browser"})

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("GET", "/screenshot")))
