//! What do records cost? Calls each second, and how long the slowest hundredth takes, under each durability, beside no records.
//!
//! Budget: `kernel` takes at most 5 % of the calls (issue 6, acceptance 3).
//!
//! Four gateways, which differ in `audit:` alone, are in front of one server of the official Rust SDK, each process its own; clients
//! take turns with all of them, a second each, so that what disturbs the machine disturbs all. A ratio is the median of those of
//! the rounds. Run with `cargo bench --bench recording`; another number of rounds may be given as an argument.
//!
//! Measured 2026-11-24, mimalloc, two shared processors that all of it kept busy, 15 rounds: 15,530 calls a second without records,
//! p99 2.2 ms, 52 µs of the gateway's work each; `async` 0.89 of that (61 µs), `kernel` 0.88 (66 µs, p99 2.7 ms), `strict` 0.63
//! (106 µs). Not within the budget.
//!
//! 2026-11-25, another machine, half as fast, in turns with the build of the day before, 12 rounds twice each: what `kernel` adds to the
//! gateway's work of each call went from 33 to 21 µs, and its part of the calls from 0.87 to 0.89.
//!
//! 2026-11-26, a machine twice as fast, 12 rounds: 23,700 calls a second without records at 32 µs each; `async` 0.91, `kernel` 0.87
//! (40 µs), `strict` 0.57; with a KiB in each call 22,100, and 0.93, 0.89, 0.57. Hashes are 1 µs of the 8, the write to the file 2 to 3;
//! two microseconds more for each call nobody works. Beside a server that answers at once (the load generator's) calls come in
//! groups, of which each is one write: there `kernel` went from 0.78 to 0.84 with that and with indexes that are filled while
//! segments are written; here, where a server of the SDK takes most of the processors, calls come one by one.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "what is sent here is well-formed, and the figures are the result"
)]

mod load;
mod server;

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use load::{Client, Slice};

/// The word by which this program is told to be the server.
const SERVER: &str = "server";
/// What is said with each call; once more as often as makes a KiB, which is what loads of gateways send as a rule.
const SAID: &str = "what is said comes back ";
const DURABILITIES: [&str; 4] = ["off", "async", "kernel", "strict"];
const ROUNDS: usize = 15;
const CONNECTIONS: usize = 16;
const TURN: Duration = Duration::from_secs(1);

/// A process that ends with this one.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A gateway under one durability, its clients, and what was measured.
struct Measured {
    durability: &'static str,
    clients: Vec<Client>,
    slices: Vec<Slice>,
    process: Running,
}

fn main() {
    let mut given = std::env::args().skip(1);
    if let Some(address) = given.by_ref().skip_while(|word| word != SERVER).nth(1) {
        return server::serve(address.parse().expect("an address"));
    }
    let rounds = std::env::args().filter_map(|word| word.parse().ok()).next();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let rounds = rounds.unwrap_or(ROUNDS).max(1);
    for said in [SAID.to_owned(), SAID.repeat(1_024 / SAID.len())] {
        println!("{} bytes said in each call:", said.len());
        runtime.block_on(measure(rounds, &said));
    }
}

async fn measure(rounds: usize, said: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let upstream = free();
    let program = std::env::current_exe().expect("this program");
    let _server = started(Command::new(program).args([SERVER, &upstream.to_string()]));
    let mut all = Vec::new();
    for durability in DURABILITIES {
        all.push(Measured::start(durability, upstream, directory.path(), said).await);
    }
    for round in 0..=rounds {
        // Each round begins with another one, and the first is not counted.
        for turn in 0..all.len() {
            let turn = (turn + round) % all.len();
            let it = &mut all[turn];
            let slice = load::slice(&mut it.clients, it.process.0.id(), TURN).await;
            if round > 0 {
                it.slices.push(slice);
            }
        }
    }
    println!("| audit | calls/s | p99 | work of each | idle for each | of the calls without |");
    println!("|---|---|---|---|---|---|");
    for it in &all {
        let rate = median(it.slices.iter().map(Slice::rate));
        let p99 = median(it.slices.iter().map(Slice::p99));
        let work = median(it.slices.iter().map(Slice::work));
        let idle = median(it.slices.iter().map(Slice::idle));
        let pairs = it.slices.iter().zip(&all[0].slices);
        let ratios = pairs.map(|(with, without)| with.rate() / without.rate());
        println!(
            "| {} | {rate:.0} | {p99:.2} ms | {work:.1} µs | {idle:.1} µs | {:.3} |",
            it.durability,
            median(ratios)
        );
    }
}

impl Measured {
    async fn start(
        durability: &'static str,
        upstream: SocketAddr,
        directory: &Path,
        said: &str,
    ) -> Self {
        let address = free();
        let audit = match durability {
            "off" => "off".to_owned(),
            other => {
                let place = directory.join(other);
                format!("{{ dir: \"{}\", durability: {other} }}", place.display())
            }
        };
        let file = directory.join(format!("{durability}.yaml"));
        let configuration = format!(
            "listen: {{ address: {address} }}\naudit: {audit}\nupstreams:\n  sdk: {{ url: \"http://{upstream}/mcp\" }}\n"
        );
        fs::write(&file, configuration).expect("a configuration");
        let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
        command.arg("serve").arg("-c").arg(&file);
        let process = started(&mut command);
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(Client::connect(address, said).await);
        }
        Self {
            durability,
            clients,
            slices: Vec::new(),
            process,
        }
    }
}

fn started(command: &mut Command) -> Running {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    Running(quiet.stderr(Stdio::null()).spawn().expect("it starts"))
}

/// An address that nobody uses.
fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address")
}

/// The one in the middle; there is one at least.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
