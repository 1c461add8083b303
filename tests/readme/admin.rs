//! The section on the admin listener is true: its configuration is served, and each of its commands gets an answer.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::told::{blocks, joined, rows, words, words_in_backticks};

const ADDRESS: &str = "127.0.0.1:8809";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn every_command_of_the_admin_section_is_answered() {
    let home = TempDir::new().expect("a directory");
    let served = Served::start(&home);
    let all = blocks("sh");
    let block = all.iter().find(|block| block.contains("/readyz"));
    let commands = joined(block.expect("commands"));
    assert!(commands.len() >= 7, "{commands:?}");
    for command in &commands {
        let answer = served.asked(&words(command));
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n"),
            "{command}: {answer}"
        );
    }
    let document = served.asked(&words(commands.last().expect("one")));
    for row in rows("| Path | What is there |") {
        for path in words_in_backticks(&row[0]) {
            assert!(document.contains(&format!("\"{path}\":{{")), "{path}");
        }
    }
    // What takes a token takes none but that.
    let upstreams = commands
        .iter()
        .find(|line| line.contains("/api/upstreams "));
    let wrong = upstreams.expect("one").replace("$USHER_ADMIN_TOKEN", "x");
    assert!(served.asked(&words(&wrong)).starts_with("HTTP/1.1 401 "));
}

/// A gateway with the configuration of the section, on free ports and with a server that is away.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(home: &TempDir) -> Self {
        let yaml = blocks("yaml");
        let yaml = yaml.iter().find(|yaml| yaml.starts_with("admin:"));
        let yaml = yaml
            .expect("a configuration")
            .replace(ADDRESS, "127.0.0.1:0");
        let yaml = yaml.replace(
            "https://api.githubcopilot.com/mcp/",
            "http://127.0.0.1:9/mcp",
        );
        let file = home.path().join("usher.yaml");
        std::fs::write(
            &file,
            format!("listen: {{ address: '127.0.0.1:0' }}\n{yaml}"),
        )
        .expect("written");
        let mut child = Command::new(env!("CARGO_BIN_EXE_usher"))
            // Where they come in is said whatever is logged.
            .args(["--log", "off", "serve", "-c"])
            .arg(&file)
            .env("USHER_ADMIN_TOKEN", TOKEN)
            .env("XDG_STATE_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("usher runs");
        let told = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut lines = told.lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let address = line.split_once("operators come in at http://")?.1;
            // Told as an event, as everything is where nobody's terminal is.
            Some(address.split('"').next()?.to_owned())
        });
        // Nobody reads on: what it says goes nowhere, and does not hold it up.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address: address.expect("it says where operators come in"),
        }
    }

    /// What a `curl` gets, head and body.
    fn asked(&self, curl: &[String]) -> String {
        let after = |flag: &str| -> Vec<String> {
            let flags = curl.windows(2).filter(|pair| pair[0] == flag);
            flags
                .map(|pair| pair[1].replace("$USHER_ADMIN_TOKEN", TOKEN))
                .collect()
        };
        let mut urls = curl.iter();
        let path = urls.find_map(|word| word.strip_prefix(&format!("http://{ADDRESS}")));
        let path = path.expect("an address");
        let body = after("-d").concat();
        let verb = if body.is_empty() { "GET" } else { "POST" };
        let mut request = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.address
        );
        for header in after("-H") {
            // Writing to a string cannot fail.
            let _ = write!(request, "{header}\r\n");
        }
        let _ = write!(request, "content-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(&self.address).expect("connected");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
