//! Enough of the DevTools protocol to look at a page: messages are JSON, each ended by a zero byte, on
//! two pipes.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// What a page measures, in CSS pixels.
pub struct Size {
    /// The width of the content.
    pub scroll_width: u64,
    /// The width of the screen.
    pub client_width: u64,
    /// The height of the content.
    pub scroll_height: u64,
}

/// A headless Chromium with one tab.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    last_id: u64,
    complaints: Vec<String>,
}

impl Browser {
    /// Starts Chromium with an empty profile below `parent`.
    pub fn start(parent: &Path) -> Self {
        let program = env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
        // Chromium reads commands from descriptor 3 and answers on descriptor 4.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null",
                "sh",
                &program,
            ])
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
            ])
            .args([
                "--hide-scrollbars",
                "--disable-background-networking",
                "--no-first-run",
            ])
            .arg(format!(
                "--user-data-dir={}",
                parent.join("profile").display()
            ))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut browser = Self {
            to: child.stdin.take().expect("a pipe"),
            from: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
            session: None,
            last_id: 0,
            complaints: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a file with this colour scheme on a screen of this width, and measures it.
    pub fn open(&mut self, file: &Path, scheme: &str, width: u64) -> Size {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        );
        self.resize(width, 800);
        self.complaints.clear();
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({ "url": url }));
        while self.text("document.readyState") != "complete" || self.text("location.href") != url {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let mut measure = |name: &str| {
            let value = self.evaluate(&format!("document.documentElement.{name}"));
            value.as_u64().expect("a number of pixels")
        };
        Size {
            scroll_width: measure("scrollWidth"),
            client_width: measure("clientWidth"),
            scroll_height: measure("scrollHeight"),
        }
    }

    fn resize(&mut self, width: u64, height: u64) {
        let mobile = width < 600;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Messages of the console and exceptions since the page was opened, and everything that the page
    /// asked for besides itself.
    pub fn complaints(&mut self) -> Vec<String> {
        // An answer comes after all events before it.
        self.evaluate("0");
        std::mem::take(&mut self.complaints)
    }

    /// The value of an expression that is text.
    pub fn text(&mut self, expression: &str) -> String {
        self.evaluate(expression)
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        let arguments = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", arguments)["result"]["value"].take()
    }

    /// The whole page as PNG.
    pub fn screenshot(&mut self, width: u64, height: u64) -> Vec<u8> {
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let arguments = json!({ "clip": clip, "captureBeyondViewport": true });
        let answer = self.call("Page.captureScreenshot", arguments);
        base64(answer["data"].as_str().expect("a picture"))
    }

    /// The printed page.
    pub fn pdf(&mut self) -> Vec<u8> {
        let arguments =
            json!({ "printBackground": false, "paperWidth": 8.27, "paperHeight": 11.69 });
        let answer = self.call("Page.printToPDF", arguments);
        base64(answer["data"].as_str().expect("a document"))
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to
            .write_all(&bytes)
            .expect("Chromium listens; is it installed?");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).expect("an answer");
            assert!(bytes.pop().is_some(), "Chromium ended; is it installed?");
            let mut message: Value = serde_json::from_slice(&bytes).expect("JSON");
            if message["id"] == json!(self.last_id) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => {
                self.complaints.push(params.to_string());
            }
            Some("Network.requestWillBeSent") if params["type"] != "Document" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                // Pictures inside of the page are requests, too.
                if !url.starts_with("data:image/png;") {
                    self.complaints.push(format!("request: {url}"));
                }
            }
            _ => {}
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // This process and no other; its children end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// RFC 4648, without the need for a crate.
fn base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0u32, 0);
    for c in text.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}
