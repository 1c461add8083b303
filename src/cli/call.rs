//! `usher call`, `usher read`, `usher prompt`: one request, its result, the end.

use std::{collections::HashSet, io::Read, sync::Arc};

use bytes::Bytes;
use clap::Args;

use super::{
    Ended,
    gateway::{Gateway, To, Where},
    near::near,
    out, shown,
};
use crate::{
    call::Identity,
    json::{Json, Kind, Limits, Node, ScanError},
    policy::Somebody,
    protocol::{
        meta,
        methods::{self, ListKind},
    },
};

/// Arguments as they are written in a shell.
const EXAMPLE: &str = r#"'{"city":"Paris"}'"#;

/// Call a tool through a gateway
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  usher call weather_get_weather '{\"city\":\"Paris\"}' --url http://127.0.0.1:8808/mcp
  usher call -c usher.yaml files_read_file '{\"path\":\"/data/a.txt\"}' --json
  usher call weather_get_weather '{\"city\":\"Oslo\"}' --as ana@example.com
  echo '{\"city\":\"Oslo\"}' | usher call weather_get_weather -")]
pub(super) struct CallArgs {
    /// The tool, by the name the gateway gives it
    tool: String,
    /// Its arguments, as a JSON object; `-` reads them from stdin
    #[arg(default_value = "{}", value_name = "JSON")]
    arguments: String,
    #[command(flatten)]
    shared: Shared,
}

/// Read a resource through a gateway
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  usher read weather+weather://cities --url http://127.0.0.1:8808/mcp
  usher read -c usher.yaml docs+file:///logo.png > logo.png")]
pub(super) struct ReadArgs {
    /// The resource, by the URI the gateway gives it
    uri: String,
    #[command(flatten)]
    shared: Shared,
}

/// Get a prompt through a gateway
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  usher prompt weather_what_to_wear city=Oslo --url http://127.0.0.1:8808/mcp
  usher prompt -c usher.yaml review_code language=rust --json")]
pub(super) struct PromptArgs {
    /// The prompt, by the name the gateway gives it
    name: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    arguments: Vec<(String, String)>,
    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, Args)]
struct Shared {
    #[command(flatten)]
    place: Where,
    /// Ask as this user, to whom the policies of the configuration apply; without it, as `Anonymous`
    #[arg(long = "as", value_name = "USER", conflicts_with = "url")]
    user: Option<String>,
    /// Print the result as it came, as JSON
    #[arg(long)]
    json: bool,
}

impl Shared {
    /// Who asks, where somebody is named.
    fn who(&self) -> Option<Arc<Identity>> {
        let somebody = Somebody {
            user: Some(self.user.clone()?),
            ..Somebody::default()
        };
        somebody.identity().map(Arc::new)
    }

    /// The arguments that name the gateway and who asks it, with a space before them.
    fn spelled(&self) -> String {
        let user = self.user.as_ref();
        let user = user.map_or_else(String::new, |user| format!(" --as {}", out::tame(user)));
        self.place.spelled() + &user
    }
}

/// Runs `usher call`.
pub(super) async fn call(args: CallArgs) -> Ended {
    let arguments = match arguments(&args.arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            out::problem(&error);
            return Ended::Misused;
        }
    };
    let params = meta::object_of(&[("name", Json::string(&args.tool)), ("arguments", arguments)]);
    ask(&args.shared, methods::TOOLS_CALL, params, |result| {
        shown::content(result);
        if let Some(failure) = failure(result) {
            out::problem(&failure);
        }
    })
    .await
}

/// Runs `usher read`.
pub(super) async fn read(args: ReadArgs) -> Ended {
    let params = meta::object_of(&[("uri", Json::string(&args.uri))]);
    ask(&args.shared, methods::RESOURCES_READ, params, |result| {
        let contents = result.root().member("contents");
        contents
            .into_iter()
            .flat_map(Node::elements)
            .for_each(shown::resource_contents);
    })
    .await
}

/// Runs `usher prompt`.
pub(super) async fn prompt(args: PromptArgs) -> Ended {
    if let Some(key) = repeated(&args.arguments) {
        out::problem(&format!("`{}` is given twice", out::tame(key)));
        return Ended::Misused;
    }
    let arguments: Vec<(&str, Json)> = args
        .arguments
        .iter()
        .map(|(key, value)| (key.as_str(), Json::string(value)))
        .collect();
    let params = meta::object_of(&[
        ("name", Json::string(&args.name)),
        ("arguments", meta::object_of(&arguments)),
    ]);
    ask(&args.shared, methods::PROMPTS_GET, params, |result| {
        let messages = result.root().member("messages");
        for message in messages.into_iter().flat_map(Node::elements) {
            let role = message
                .member("role")
                .and_then(Node::as_str)
                .unwrap_or_default();
            out::line(&out::paint(out::BOLD, &format!("{}:", out::tame(&role))));
            if let Some(content) = message.member("content") {
                shown::block(content);
            }
        }
    })
    .await
}

async fn ask(shared: &Shared, method: &str, params: Json, show: impl FnOnce(&Json)) -> Ended {
    let asked = asked(&params);
    let to = To::Ask(kind_of(method), &asked);
    let gateway = match shared.place.asked_by(shared.who(), to).await {
        Ok(gateway) => gateway,
        Err(ended) => return ended,
    };
    let answer = gateway.request(method, params).await;
    let result = match answer {
        Ok(result) => result,
        Err(refused) => {
            shown::refusal(&refused, shared.json);
            if !shared.json && refused.is_unknown_name() {
                suggest(&gateway, &shared.spelled(), kind_of(method), &asked).await;
            }
            return gateway.end(Ended::Failed).await;
        }
    };
    let closed = gateway.close().await;
    let member = |key: &str| result.root().member(key);
    let asks = member("resultType").and_then(Node::as_str).as_deref() == Some("input_required");
    let failed = member("isError").and_then(Node::as_bool) == Some(true);
    if shared.json {
        out::line(result.as_str());
    } else if asks {
        out::problem(
            "it asks for input first, which this command cannot give; --json shows what it asks",
        );
    } else {
        show(&result);
    }
    closed.err().unwrap_or(if asks || failed {
        Ended::Failed
    } else {
        Ended::Well
    })
}

/// Whose word it is that a call failed, where it failed. A gateway lets nobody but itself give a reason of its own.
fn failure(result: &Json) -> Option<String> {
    let root = result.root();
    if root.member("isError").and_then(Node::as_bool) != Some(true) {
        return None;
    }
    let reason = root
        .member(meta::META)
        .and_then(|about| about.member("dev.usher/reason"))
        .and_then(Node::as_str);
    Some(reason.map_or_else(
        || "the tool says that it failed".to_owned(),
        |reason| {
            let reason = out::tame(&reason);
            format!("the gateway says this, not the tool: `{reason}`")
        },
    ))
}

/// In which list stands what such a request asks for.
fn kind_of(method: &str) -> ListKind {
    match method {
        methods::TOOLS_CALL => ListKind::Tools,
        methods::PROMPTS_GET => ListKind::Prompts,
        _ => ListKind::Resources,
    }
}

/// The name or the address that a request asks for.
fn asked(params: &Json) -> String {
    ["name", "uri"]
        .into_iter()
        .find_map(|key| params.root().member(key).and_then(Node::as_str))
        .unwrap_or_default()
        .into_owned()
}

/// Says what is called nearly so, or where all names are.
async fn suggest(gateway: &Gateway, spelled: &str, kind: ListKind, asked: &str) {
    // Without a list there is nothing to suggest, and the refusal has been told.
    let Ok(items) = gateway.list(kind).await else {
        return;
    };
    let names: Vec<String> = items
        .iter()
        .filter_map(|item| item.root().member(kind.key()).and_then(Node::as_str))
        .map(|name| out::tame(&name))
        .collect();
    if let Some(advice) = advice(&out::tame(asked), &names, spelled) {
        out::note(&advice);
    }
}

/// What helps whoever asked for this where these are the names; nothing where it is one of them, since something else is
/// wrong then, for which servers have the same code.
fn advice(asked: &str, names: &[String], spelled: &str) -> Option<String> {
    if names.iter().any(|name| name == asked) {
        return None;
    }
    let close: Vec<String> = near(asked, names)
        .into_iter()
        .map(|name| format!("`{name}`"))
        .collect();
    Some(match close.as_slice() {
        [] => format!("`usher catalog{spelled}` shows what there is"),
        close => format!("did you mean {}?", close.join(" or ")),
    })
}

fn arguments(text: &str) -> Result<Json, String> {
    let mut text = text.to_owned();
    if text == "-" {
        text.clear();
        std::io::stdin()
            .take(Limits::CLIENT.values as u64 * 1_024)
            .read_to_string(&mut text)
            .map_err(|error| format!("stdin: {error}"))?;
    }
    let json = Json::parse(Bytes::from(text), &Limits::CLIENT).map_err(|error| {
        let mut said = format!("the arguments cannot be used: {error}");
        if matches!(error, ScanError::Syntax(_)) {
            said.push_str("; write a JSON object, such as ");
            said.push_str(EXAMPLE);
        }
        said
    })?;
    if json.root().kind() == Kind::Object {
        Ok(json)
    } else {
        Err(format!(
            "the arguments are no JSON object, such as {EXAMPLE}"
        ))
    }
}

/// The first key that is there already.
fn repeated(pairs: &[(String, String)]) -> Option<&str> {
    let mut keys = HashSet::new();
    let mut all = pairs.iter().map(|(key, _)| key.as_str());
    all.find(|key| !keys.insert(*key))
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("write KEY=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments that name a gateway, as they are told again.
    fn spelled(arguments: &[&str]) -> String {
        #[derive(clap::Parser)]
        struct Parsed {
            #[command(flatten)]
            shared: Shared,
        }
        let arguments = ["usher"].iter().chain(arguments);
        let parsed = <Parsed as clap::Parser>::try_parse_from(arguments);
        parsed.expect("well-formed").shared.spelled()
    }

    #[test]
    fn what_was_asked_for_is_never_suggested_and_its_like_only_where_it_is_not_there() {
        let names = ["a_echo".to_owned(), "a_echo2".to_owned()];
        let there = spelled(&[]);
        assert_eq!(advice("a_echo", &names, &there), None);
        let close = "did you mean `a_echo` or `a_echo2`?".to_owned();
        assert_eq!(advice("a_ecoh", &names, &there), Some(close));
    }

    #[test]
    fn the_list_of_names_is_that_of_the_gateway_that_was_asked() {
        let url = "http://127.0.0.1:1/mcp";
        for (arguments, told) in [
            (vec![], "`usher catalog` shows what there is"),
            (
                vec!["--url", url],
                "`usher catalog --url http://127.0.0.1:1/mcp` shows what there is",
            ),
            (
                vec!["-c", "a.yaml"],
                "`usher catalog -c a.yaml` shows what there is",
            ),
            (
                vec!["--mcp-json", "b.json"],
                "`usher catalog --mcp-json b.json` shows what there is",
            ),
            (
                vec!["-c", "a.yaml", "--as", "ana"],
                "`usher catalog -c a.yaml --as ana` shows what there is",
            ),
        ] {
            let advice = advice("nope", &[], &spelled(&arguments));
            assert_eq!(advice.as_deref(), Some(told));
        }
    }

    #[test]
    fn arguments_that_are_no_object_are_answered_with_an_example() {
        for wrong in ["message=hi", "[]", "{city:1}"] {
            let said = arguments(wrong).expect_err("no object");
            assert!(said.contains(EXAMPLE), "{said}");
        }
        let twice = arguments(r#"{"a":1,"a":2}"#).expect_err("a member twice");
        assert!(
            twice.starts_with("the arguments cannot be used: a member name is repeated"),
            "{twice}"
        );
        let deep = "[".repeat(1_000);
        let said = arguments(&deep).expect_err("too deep");
        assert!(!said.contains(EXAMPLE), "{said}");
    }
}
