//! `usher demo`: three servers behind one endpoint, over real transports, and what to try.
//!
//! The servers are in this binary; the gateway in front of them is the whole one, with the plan that a configuration file
//! would have given.

use std::{
    ffi::OsStr,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use clap::Args as ClapArgs;

use super::{Ended, catalog, out, serve, shown};
use crate::{
    app::App,
    config::{self, Plan, Rejected},
    json::Json,
    protocol::{Revision, methods::ListKind, mirror},
    tasks::Tasks,
};

/// How long the catalog is waited for before it is printed.
const SETTLE: Duration = Duration::from_secs(2);

/// Run three built-in servers behind one endpoint, and print what to try
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher demo
  usher demo --port 9000

Ctrl-C ends it. Nothing is written to disk, calls are not recorded, and nothing leaves this machine.")]
pub(super) struct Args {
    /// The port on 127.0.0.1
    #[arg(long, default_value_t = 8808)]
    port: u16,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    let tasks = Tasks::new();
    let servers = match crate::demo::start(&tasks).await {
        Ok(servers) => servers,
        Err(error) => {
            out::problem(&format!("the demo servers do not start: {error}"));
            return Ended::Failed;
        }
    };
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            out::problem(&format!("the path of this program is not known: {error}"));
            return Ended::Failed;
        }
    };
    let plan = match plan(args.port, &program, &servers) {
        Ok(plan) => plan,
        Err(rejected) => {
            super::source::tell(&rejected);
            return Ended::Failed;
        }
    };
    let ended = serve::serve(plan, None, async |app, url| {
        drop(app.settled(SETTLE).await);
        introduce(
            app,
            url,
            &called(&program, std::env::var_os("PATH").as_deref()),
        );
    })
    .await;
    tasks.finish().await;
    ended
}

fn plan(port: u16, program: &Path, servers: &crate::demo::Demo) -> Result<Plan, Rejected> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let quoted = |text: &str| Json::string(text).as_str().to_owned();
    config::of_text(&format!(
        "listen: {{ address: \"{address}\" }}\n\
         audit: off\n\
         upstreams:\n\
         \x20 travel: {{ command: [{}, demo-travel] }}\n\
         \x20 weather: {{ url: {} }}\n\
         \x20 calendar: {{ url: {} }}\n",
        quoted(&program.to_string_lossy()),
        quoted(&servers.weather_url),
        quoted(&servers.calendar_url),
    ))
}

/// Prints what there is and what to try.
fn introduce(app: &App, url: &str, program: &str) {
    out::line("");
    out::line(&shown::statuses(&app.statuses()));
    out::line("");
    let lists: Vec<(ListKind, Vec<Json>)> = ListKind::ALL
        .into_iter()
        .map(|kind| (kind, app.catalog(kind)))
        .collect();
    catalog::print(&lists);
    out::line(&see_this());
    out::line(&try_this(url, program));
}

/// What there is to see that is not an answer to a call, and how to bring it about.
const SIGHTS: [(&str, &str); 5] = [
    (
        "a tool that appears",
        "call travel_add_to_trip with PAR-TYO-1; travel_book_trip is listed until the trip is booked",
    ),
    (
        "a resource that changes",
        "subscribe to calendar+calendar://agenda, then call calendar_create_event",
    ),
    (
        "progress",
        "call weather_compare_cities with a few cities and a progress token",
    ),
    (
        "a confirmation",
        "call calendar_send_email; the client asks its user (elicitation)",
    ),
    (
        "a question to the model",
        "call calendar_draft_invitation; the client asks its model (sampling)",
    ),
];

fn see_this() -> String {
    let mut text = format!(
        "\n{}",
        out::paint(out::BOLD, "See it talk back, in any client:")
    );
    for (sight, how) in SIGHTS {
        text.push_str(&format!("\n{sight:<25}{how}"));
    }
    text
}

const TOOL: &str = "weather_get_weather";

/// What to type so that this very program is called: its name where the shell finds it, else its path.
fn called(program: &Path, search: Option<&OsStr>) -> String {
    let same = |found: &Path| match (found.canonicalize(), program.canonicalize()) {
        (Ok(found), Ok(program)) => found == program,
        _ => false,
    };
    let first = search.and_then(|search| {
        std::env::split_paths(search)
            .map(|directory| directory.join("usher"))
            .find(|candidate| candidate.is_file())
    });
    if first.is_some_and(|first| same(&first)) {
        return "usher".to_owned();
    }
    let path = program.to_string_lossy();
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+".contains(char);
    if path.chars().all(plain) {
        path.into_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

fn try_this(url: &str, program: &str) -> String {
    let heading = |text: &str| out::paint(out::BOLD, text);
    let revision = Revision::LATEST_MODERN;
    let (version, method, name) = (mirror::PROTOCOL_VERSION, mirror::METHOD, mirror::NAME);
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    );
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{TOOL}","arguments":{{"city":"Paris"}},{meta}}}}}"#
    );
    format!(
        "
{shell}
curl -sS {url} \\
  -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \\
  -H '{version}: {revision}' -H '{method}: tools/call' -H '{name}: {TOOL}' \\
  -d '{body}'

{usher}
{program} call {TOOL} '{{\"city\":\"Paris\"}}' --url {url}
{program} catalog --url {url}

{python}
python3 - <<'EOF'
import asyncio
from mcp import Client

async def main():
    async with Client(\"{url}\") as client:
        print(await client.call_tool(\"{TOOL}\", {{\"city\": \"Paris\"}}))

asyncio.run(main())
EOF

{typescript}
node --input-type=module <<'EOF'
import {{ Client }} from '@modelcontextprotocol/sdk/client/index.js'
import {{ StreamableHTTPClientTransport }} from '@modelcontextprotocol/sdk/client/streamableHttp.js'
const client = new Client({{ name: 'try', version: '1' }})
await client.connect(new StreamableHTTPClientTransport(new URL('{url}')))
console.log(await client.callTool({{ name: '{TOOL}', arguments: {{ city: 'Paris' }} }}))
await client.close()
EOF

{hosts}
claude mcp add --transport http usher {url}
",
        shell = heading("Try it with curl:"),
        usher = heading("With this program, from another terminal:"),
        python = heading("With the Python SDK (pip install 'mcp>=2'):"),
        typescript = heading("With the TypeScript SDK (npm install @modelcontextprotocol/sdk):"),
        hosts = heading("From Claude Code:"),
    )
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{json::Limits, jsonrpc::decode};

    fn servers() -> crate::demo::Demo {
        crate::demo::Demo {
            weather_url: "http://127.0.0.1:4001/mcp".into(),
            calendar_url: "http://127.0.0.1:4002/mcp".into(),
        }
    }

    #[test]
    fn the_demo_is_a_plan_of_three_upstreams_on_loopback() {
        let plan = plan(0, Path::new("/a b/\"usher\""), &servers()).expect("a plan");
        let ids: Vec<&str> = plan.upstreams.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["travel", "weather", "calendar"]);
        assert!(plan.listen.address.ip().is_loopback());
        assert!(plan.audit.is_none(), "it writes nothing to disk");
    }

    #[test]
    fn every_sight_is_of_something_that_the_demo_offers() {
        let offered = include_str!("../demo/travel.rs").to_owned()
            + include_str!("../demo/weather.rs")
            + include_str!("../demo/calendar.rs");
        let mut named = 0;
        for word in SIGHTS
            .iter()
            .flat_map(|(_, how)| how.split([' ', ';', ',']))
        {
            let own = ["travel_", "weather_", "calendar_", "calendar+"];
            let Some(name) = own.iter().find_map(|prefix| word.strip_prefix(prefix)) else {
                continue;
            };
            named += 1;
            assert!(offered.contains(&format!("\"{name}\"")), "{name}");
        }
        assert_eq!(named, 7);
    }

    #[test]
    fn printed_commands_call_this_very_program_wherever_it_is() {
        use std::os::unix::fs::symlink;

        let directory = tempfile::TempDir::new().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        for name in ["mine", "others", "it's here"] {
            std::fs::create_dir(at(name)).expect("made");
        }
        let program = at("it's here").join("usher");
        std::fs::write(&program, "").expect("written");
        std::fs::write(at("others").join("usher"), "").expect("written");
        symlink(&program, at("mine").join("usher")).expect("linked");
        let search =
            |names: &[&str]| std::env::join_paths(names.iter().map(|n| at(n))).expect("a path");
        assert_eq!(
            called(&program, Some(&search(&["mine", "others"]))),
            "usher"
        );
        let path = called(&program, Some(&search(&["others", "mine"])));
        assert!(
            path.ends_with(r"/it'\''s here/usher'") && path.starts_with('\''),
            "{path}"
        );
        assert_eq!(called(Path::new("/opt/usher"), None), "/opt/usher");
        assert!(try_this("http://x/mcp", "/opt/usher").contains("\n/opt/usher call "));
    }

    #[test]
    fn the_body_of_the_printed_call_is_one_request_and_its_headers_mirror_it() {
        let text = anstream::adapter::strip_str(&try_this("http://127.0.0.1:8808/mcp", "usher"))
            .to_string();
        let body = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("-d '"))
            .and_then(|line| line.strip_suffix('\''))
            .expect("a body");
        let frame = decode(Bytes::from(body.to_owned()), &Limits::CLIENT).expect("a frame");
        assert!(format!("{frame:?}").contains("Request"));
        for header in [
            "'mcp-protocol-version: 2026-07-28'",
            "'mcp-method: tools/call'",
            "'mcp-name: weather_get_weather'",
        ] {
            assert!(text.contains(header), "{header}");
        }
    }
}
