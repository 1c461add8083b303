//! `usher serve`: the gateway, until it is told to stop.

use std::{collections::HashMap, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use clap::Args as ClapArgs;
use secrecy::ExposeSecret;
use tokio::time::{sleep, timeout};

use super::{
    Ended,
    gateway::{build_observed, observed},
    logs, out, shown,
    signals::{Again, Stop},
    source::Source,
};
use crate::{
    app::{AdminAt, App, AppError, Load, UpstreamStatus},
    audit::sinks::Stream,
    auth::spec::AuthSpec,
    config::{Plan, StartCertificates},
    downstream::HEAD_START,
    protocol::{Revision, UpstreamId},
    server::{descriptors, spec::ServerBounds},
    tasks::{Lanes, Tasks},
};

/// How often upstreams are looked at for lines on the terminal, and for how long after the start.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: usize = 600;

/// How long `usher stdio` takes to answer what is in flight when it is told to stop.
const DRAIN: Duration = Duration::from_secs(5);
/// How long it takes then to say that it stops to whoever takes longer.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What names a proxy for what goes out, to most programs.
const PROXIES: [&str; 6] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Run the gateway
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher serve                                    what usher.yaml says
  usher serve -c /etc/usher/usher.yaml --log debug
  usher serve --mcp-json ~/.cursor/mcp.json      the servers of an existing file

SIGHUP reads policies and limits again; a change of the policies' directory is found by itself.
SIGTERM and SIGINT finish what is in flight, then end with exit code 0; a second one waits for no call:
what is in flight is answered `shutting_down`, and it ends within seconds, with exit code 1.")]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    let Some(plan) = args.source.plan_to_serve() else {
        return Ended::Misused;
    };
    let source = args.source;
    let shown = StartCertificates::of(&plan);
    let load: Load = Arc::new(move || source.load_again(&shown).map(|(plan, _)| plan));
    serve(plan, Some(load), async |_, _| {}).await
}

/// Serves `plan`, which `load` reads again; `ready` is called once the endpoint takes connections, with its URL.
pub(super) async fn serve(
    mut plan: Plan,
    load: Option<Load>,
    ready: impl AsyncFnOnce(&App, &str),
) -> Ended {
    // With nothing to read again SIGHUP is what it is to any program: its terminal is gone, and it ends.
    let again = || load.is_some().then(Again::listen).transpose();
    let signals = Stop::listen().and_then(|stop| Ok((stop, again()?)));
    let (mut stop, mut again) = match signals {
        Ok(signals) => signals,
        Err(error) => {
            out::problem(&format!("signals: {error}"));
            return Ended::Failed;
        }
    };
    let fewer = fit(&mut plan);
    let greeting = Greeting::of(&plan, fewer);
    // What `usher demo` runs stays on this machine.
    let unused = load.as_ref().and_then(|_| unused_proxies(is_set));
    let (app, tasks) = match started(plan).await {
        Ok(started) => started,
        Err(ended) => return ended,
    };
    if let Some(load) = load {
        app.reloads_from(load);
    }
    let address = match app.bind().await {
        Ok(address) => address,
        Err(error) => {
            out::problem(&not_bound(&error));
            app.shutdown().await;
            tasks.finish().await;
            return Ended::Failed;
        }
    };
    let url = greeting.url(address);
    greeting.say(&app, &url);
    if let Some(unused) = unused {
        logs::say(&format!("{}: {unused}", out::paint(out::YELLOW, "note")));
    }
    tokio::select! {
        () = stop.asked() => {}
        () = read_on(&app, again.as_mut()) => {}
        () = async {
            ready(&app, &url).await;
            if out::notes_to_terminal() {
                watch(&app).await;
            }
            std::future::pending::<()>().await;
        } => {}
    }
    logs::say("stopping: what is in flight is finished first");
    end(&app, tasks, &mut stop, std::future::ready(())).await
}

/// Has a gateway made, and what runs it; or says why not.
async fn started(plan: Plan) -> Result<(App, Tasks), Ended> {
    // Before anything else is made: instruments count where they find a provider when they are first used.
    let telemetry = observed(&plan)?;
    let tasks = match Lanes::start() {
        Ok(lanes) => Tasks::over(lanes),
        Err(error) => {
            out::problem(&format!("the threads that serve do not start: {error}"));
            return Err(Ended::Failed);
        }
    };
    match App::observed(plan, Some(telemetry), tasks.child()).await {
        Ok(app) => Ok((app, tasks)),
        Err(error) => {
            out::problem(&error.to_string());
            Err(Ended::Failed)
        }
    }
}

/// That fewer files may be open here than the configured bounds need.
struct Fewer {
    /// How many may be.
    files: u64,
    /// The connections that were asked for.
    asked: usize,
}

/// Makes the bounds on connections fit into what may be open here; says where that makes them fewer.
fn fit(plan: &mut Plan) -> Option<Fewer> {
    let (bounds, files) =
        descriptors::fitted(plan.listen.bounds, !plan.listen.trusted_proxies.is_empty());
    let asked = std::mem::replace(&mut plan.listen.bounds, bounds).connections;
    files.map(|files| Fewer { files, asked })
}

/// What is said once the endpoint takes connections.
struct Greeting {
    scheme: &'static str,
    endpoint: String,
    /// Who is let in, where that is worth a word.
    who: Option<&'static str>,
    authorities: usize,
    bounds: ServerBounds,
    fewer: Option<Fewer>,
    is_recorded: bool,
    /// Whether standard output is for records alone.
    records_on_stdout: bool,
}

impl Greeting {
    fn of(plan: &Plan, fewer: Option<Fewer>) -> Self {
        let sinks = plan.audit.as_ref().map(|audit| &audit.sinks);
        Self {
            scheme: if plan.listen.tls.is_some() {
                "https"
            } else {
                "http"
            },
            endpoint: plan.endpoint.clone(),
            who: admitted(plan),
            authorities: plan.auth.as_ref().map_or(0, AuthSpec::authorities),
            bounds: plan.listen.bounds,
            fewer,
            is_recorded: plan.audit.is_some(),
            records_on_stdout: sinks.is_some_and(|sinks| sinks.lines == Some(Stream::Stdout)),
        }
    }

    fn url(&self, address: SocketAddr) -> String {
        format!("{}://{address}{}", self.scheme, self.endpoint)
    }

    fn say(&self, app: &App, url: &str) {
        let ready_at = format!("usher is ready at {}", out::paint(out::BOLD, url));
        if self.records_on_stdout {
            logs::say(&ready_at);
        } else {
            out::line(&ready_at);
        }
        if let Some(admin) = app.admin() {
            logs::say(&operators(&admin, out::notes_to_terminal()));
        }
        if let Some(who) = self.who {
            logs::say(&out::paint(out::DIM, who));
        }
        if let Some(note) = app.snapshot().policy().policy().pooled(self.authorities) {
            logs::say(&format!("{}: {note}", out::paint(out::YELLOW, "note")));
        }
        if let Some(Fewer { files, asked }) = self.fewer {
            let (note, most) = (out::paint(out::YELLOW, "note"), self.bounds.connections);
            let of_one = self.bounds.connections_per_peer;
            logs::say(&format!(
                "{note}: {files} files may be open here (`ulimit -Hn`), so that at most {most} connections are taken at once, not {asked}, and {of_one} of one address"
            ));
        }
        if !self.is_recorded {
            logs::say(&out::paint(out::DIM, "`audit: off`: nothing is recorded"));
        }
    }
}

/// Ends it, once this is done: in an orderly way, or where a second signal comes, at once. Then too, whatever was begun has its
/// answer and its record before the log is closed (SECURITY 8).
async fn end(app: &App, tasks: Tasks, stop: &mut Stop, first: impl Future<Output = ()>) -> Ended {
    let ending = async {
        first.await;
        app.clone().shutdown().await;
        tokio::select! {
            () = tasks.finish() => {}
            () = app.hurried() => {}
        }
    };
    let mut ending = pin!(ending);
    tokio::select! {
        () = &mut ending => return Ended::Well,
        () = stop.asked() => {}
    }
    let calls = app.hurry();
    logs::say(&format!(
        "stopping at once: a further signal came; calls in flight that are cut short: {calls}"
    ));
    tokio::select! {
        () = ending => {}
        // Nor is that to be waited for.
        () = stop.asked() => {}
    }
    Ended::Failed
}

/// Where operators come in, and with what, where that was made just now and somebody reads it: in a log it would stay (SECURITY AUD-8).
fn operators(admin: &AdminAt, to_terminal: bool) -> String {
    let scheme = if admin.encrypted { "https" } else { "http" };
    let token = admin.made.as_ref().map(ExposeSecret::expose_secret);
    let token = token.map_or_else(String::new, |token| match to_terminal {
        true => format!("; the token of this start is {token} (`admin.token` sets one that stays)"),
        false => "; the token of this start is shown on terminals alone: set one with `admin.token` (`openssl rand -hex 32` makes one)".into(),
    });
    format!("operators come in at {scheme}://{}{token}", admin.address)
}

/// Reads again what can be, each time it is asked for; does not end.
async fn read_on(app: &App, again: Option<&mut Again>) {
    if let Some(again) = again {
        loop {
            again.asked().await;
            again_read(app).await;
        }
    }
    std::future::pending().await
}

/// Reads again what can be. What is wrong with policies is in the log already, as with a change that is found.
async fn again_read(app: &App) {
    match app.reload().await {
        Ok(reloaded) => {
            tracing::info!(reloaded = ?reloaded.reloaded, "read again");
            for problem in &reloaded.unfit {
                tracing::warn!("policy: {problem}");
            }
            if reloaded.restart_needed {
                tracing::warn!(
                    keys = reloaded.restart_keys.join(", "),
                    "the configuration, or what it refers to, says something else that only a restart puts in force"
                );
            }
        }
        Err(problems) => {
            for problem in problems {
                tracing::error!("{problem}");
            }
            tracing::error!("what was in force stays so");
        }
    }
}

/// Whether this variable is set to something.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// That proxies which other programs would use are not used here, where some are set. What they are set to may hold a password.
fn unused_proxies(is_set: impl Fn(&str) -> bool) -> Option<String> {
    let set: Vec<_> = PROXIES.into_iter().filter(|name| is_set(name)).collect();
    (!set.is_empty()).then(|| {
        format!(
            "{} in the environment is not used: Usher connects to servers and login servers directly, and a program that it starts gets a variable only by its `env`",
            set.join(", ")
        )
    })
}

/// Who is let in without being asked, or that nobody may do anything, where that is so.
fn admitted(plan: &Plan) -> Option<&'static str> {
    match &plan.auth {
        None if plan.policy.is_some() => Some(
            "without `auth` everybody is `Anonymous` to the policies, and no user, agent or key",
        ),
        None => Some("without `auth` whoever can use this machine's loopback can use it"),
        Some(_) if plan.policy.is_none() => Some(
            "`auth` without `policy`: nobody may use anything; `usher init --operator YOU` writes policies that permit you alone, \
             `policy: { dir: policies }` puts them in force",
        ),
        Some(auth) if auth.anonymous => {
            Some("`auth.anonymous` lets in whoever brings no credential")
        }
        Some(_) => None,
    }
}

/// Why there is no listener, and what to do.
fn not_bound(error: &AppError) -> String {
    let AppError::Bind { address, cause } = error else {
        return error.to_string();
    };
    let kind = cause.kind();
    if kind == io::ErrorKind::AddrInUse {
        format!(
            "{address} is taken by another program; end that one, or choose another port: `listen.address` in the \
             configuration, `--port` for `usher demo`"
        )
    } else if kind == io::ErrorKind::AddrNotAvailable {
        format!("{address} is no address of this machine; see `listen.address`")
    } else {
        error.to_string()
    }
}

/// Runs `usher stdio` for `source`.
pub(super) async fn stdio(source: &Source) -> Ended {
    // First: whoever stops it while it starts its servers has them ended, too.
    let mut stop = match Stop::listen() {
        Ok(stop) => stop,
        Err(error) => {
            out::problem(&format!("signals: {error}"));
            return Ended::Failed;
        }
    };
    let (app, tasks) = match build_observed(source).await {
        Ok(built) => built,
        Err(ended) => return ended,
    };
    if let Some(unused) = unused_proxies(is_set) {
        logs::say(&format!("{}: {unused}", out::paint(out::YELLOW, "note")));
    }
    let speaking = app.clone();
    let speak = async move {
        // Whatever comes first finds the servers that are quick; lists wait for the others, too.
        speaking.settled(HEAD_START).await;
        speaking.stdio().await
    };
    let mut speak = pin!(speak);
    let ended = tokio::select! {
        ended = speak.as_mut() => match ended {
            Ok(()) => Ended::Well,
            Err(error) => {
                out::problem(&error.to_string());
                Ended::Failed
            }
        },
        () = stop.asked() => {
            let last_words = async {
                app.drain();
                tokio::select! {
                    _ = speak.as_mut() => return,
                    () = sleep(DRAIN) => {}
                    () = app.hurried() => {}
                }
                app.conclude();
                // A client that does not read is not waited for.
                drop(timeout(LAST_WORDS, speak).await);
            };
            return end(&app, tasks, &mut stop, last_words).await;
        }
    };
    // Hosts close stdin and then send signals, which are no failure of what was said until then.
    end(&app, tasks, &mut stop, std::future::ready(())).await;
    ended
}

/// A line on the terminal for each upstream whenever its state is another, until all have one.
async fn watch(app: &App) {
    let mut last: HashMap<UpstreamId, &'static str> = HashMap::new();
    let mut looks = tokio::time::interval(LOOK);
    for _ in 0..LOOKS {
        looks.tick().await;
        let statuses = app.statuses();
        for status in &statuses {
            if status.state != "connecting"
                && last.insert(status.id.clone(), status.state) != Some(status.state)
            {
                out::note(&told(status));
            }
        }
        if statuses.iter().all(|status| status.state == "ready") {
            return;
        }
    }
}

fn told(status: &UpstreamStatus) -> String {
    let [tools, prompts, resources, templates] = status.counts;
    if status.state == "ready" {
        let revision = status.revision.map_or("-", Revision::as_str);
        format!(
            "  {} {} ({revision}): {tools} tools, {prompts} prompts, {resources} resources, {templates} templates",
            out::paint(out::GREEN, "ready"),
            status.id
        )
    } else {
        let error = status.error.as_deref().unwrap_or("not reached");
        format!(
            "  {} {}: {}",
            out::paint(out::RED, status.state),
            status.id,
            out::short(error, shown::REASON)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_is_set_and_not_used_is_named_and_none_where_none_is_set() {
        assert_eq!(unused_proxies(|_| false), None);
        let told = unused_proxies(|name| matches!(name, "https_proxy" | "ALL_PROXY"));
        let told = told.unwrap();
        assert!(told.starts_with("https_proxy, ALL_PROXY in"), "{told}");
        assert!(told.contains("not used"), "{told}");
    }

    #[test]
    fn a_taken_port_is_named_once_with_what_to_do() {
        let error = AppError::Bind {
            address: ([127, 0, 0, 1], 8808).into(),
            cause: io::Error::from_raw_os_error(98),
        };
        let told = not_bound(&error);
        assert_eq!(told.matches("127.0.0.1:8808").count(), 1, "{told}");
        assert!(
            told.contains("--port") && !told.contains("os error"),
            "{told}"
        );
        let error = AppError::Bind {
            address: ([192, 0, 2, 1], 1).into(),
            cause: io::Error::from_raw_os_error(13),
        };
        assert_eq!(not_bound(&error).matches("192.0.2.1:1").count(), 1);
    }
}
