//! A page in a headless browser.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time for drawing a page.
const LIMIT: Duration = Duration::from_mins(1);

/// A page that was opened in headless Chromium, without a network.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The document once scripts have run, as HTML.
    pub document: String,
    /// Messages of the page on the console, and uncaught errors.
    pub console: Vec<String>,
}

/// Opens the page at `path`, with `fragment` behind its address.
///
/// # Panics
/// If there is no Chromium, or it does not end.
pub fn open(path: &Path, fragment: &str) -> Opened {
    let profile = tempfile::tempdir().expect("a directory for its profile");
    let address = format!("file://{}{fragment}", path.display());
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ]);
    command.args(["--enable-logging=stderr", "--virtual-time-budget=20000", "--window-size=1400,1000"]);
    command
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!("--user-data-dir={}", profile.path().display()));
    command.args(["--dump-dom", &address]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut browser = command.spawn().expect("chromium, as scripts/setup installs it");
    let (mut out, mut log) = (browser.stdout.take().expect("piped"), browser.stderr.take().expect("piped"));
    let reader = std::thread::scope(|scope| {
        let document = scope.spawn(move || text(&mut out));
        let log = scope.spawn(move || text(&mut log));
        #[expect(clippy::disallowed_methods, reason = "a browser lives in real time")]
        let begin = Instant::now();
        while browser.try_wait().expect("a child").is_none() {
            if begin.elapsed() > LIMIT {
                browser.kill().expect("a child");
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        (document.join().expect("read"), log.join().expect("read"))
    });
    let (document, log) = reader;
    assert!(document.contains("</html>"), "no page: {log}");
    // The browser's own pages also complain, of a slow network.
    let is_of_page = |line: &&str| line.contains("CONSOLE") && !line.contains("source: chrome://");
    let console = log.lines().filter(is_of_page).map(str::to_owned).collect();
    Opened { document, console }
}

fn text(from: &mut impl std::io::Read) -> String {
    let mut octets = Vec::new();
    from.take(1 << 28).read_to_end(&mut octets).expect("a pipe");
    String::from_utf8_lossy(&octets).into_owned()
}

impl Opened {
    /// Returns the texts of all elements of this name in the table with this id, in order.
    pub fn texts(&self, id: &str, element: &str) -> Vec<String> {
        let Some(at) = self.document.find(&format!("id=\"{id}\"")) else { return Vec::new() };
        let rest = &self.document[at..];
        let end = rest.find("</table>").unwrap_or(rest.len());
        let mut all = Vec::new();
        let mut rest = &rest[..end];
        while let Some(at) = rest.find(&format!("<{element}")) {
            let inner = &rest[at..];
            let Some(begin) = inner.find('>') else { break };
            let end = inner.find(&format!("</{element}>")).unwrap_or(inner.len());
            all.push(plain(&inner[begin + 1..end]));
            rest = &inner[end..];
        }
        all
    }
}

/// Returns text without elements, and with characters in place of their entities.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
