//! Payloads are spliced: arguments and results arrive byte for byte, whatever JSON they are (acceptance 7, SECURITY MSG-2, MSG-6).

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tokio::runtime::Runtime;

use crate::harness::{Client, Gateway, Pairing, Play, Revision, Upstream, member, members, tool};

/// Nothing is looked for in content.
pub(crate) const UNSEEN: &str = "sanitize: { classes: { hidden_unicode: off, terminal_control: off, own_credential: off, secret: off, weak_secret: off, personal_checked: off, active_content: off, injection: off, media: off, elicitation: off } }";

/// Random payloads of each property on each pairing.
const CASES: u32 = 48;

/// Random payloads where a property is looked at once more, on another way.
const FEWER: u32 = 24;

/// Characters, each with a choice of how it is spelled.
type Spelled = Vec<(char, u8)>;

/// A payload: what it is, and how it is spelled.
#[derive(Debug, Clone)]
enum Tree {
    Plain(String),
    Text(Spelled),
    List(Vec<(Self, u8)>),
    Object(Vec<(Spelled, Self, u8)>),
}

/// Names that mean something to somebody: to a gateway, to JavaScript, to a reader that folds or splits.
const NAMES: [&str; 24] = [
    "a",
    "A",
    "b",
    "id",
    "name",
    "Name",
    "uri",
    "method",
    "params",
    "result",
    "error",
    "jsonrpc",
    "_meta",
    "progressToken",
    "arguments",
    "__proto__",
    "constructor",
    "toString",
    "",
    "a.b",
    "$ref",
    "content",
    "type",
    "requestState",
];

const NUMBERS: [&str; 16] = [
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1.50",
    "1e5",
    "1E+5",
    "1e-400",
    "1E400",
    "0.1",
    "9007199254740993",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "0.123456789012345678901234567890",
    "5e-324",
];

fn text() -> impl Strategy<Value = Spelled> {
    let named = prop::sample::select(&NAMES[..]).prop_map(|name| name.chars().collect::<Vec<_>>());
    let random = prop::collection::vec(
        prop_oneof![
            any::<char>(),
            prop::char::range(' ', '~'),
            Just('\u{2028}'),
            Just('"'),
            Just('\\'),
            Just('😀')
        ],
        0..12,
    );
    (prop_oneof![named, random], any::<u8>()).prop_map(|(chars, seed)| {
        let spell = |(at, c): (usize, char)| {
            (
                c,
                seed.wrapping_mul(31)
                    .wrapping_add(u8::try_from(at % 256).unwrap()),
            )
        };
        chars.into_iter().enumerate().map(spell).collect()
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    tree_of(text().boxed())
}

/// Payloads whose texts and names are of this kind.
fn tree_of(text: BoxedStrategy<Spelled>) -> impl Strategy<Value = Tree> {
    let number = prop_oneof![
        prop::sample::select(&NUMBERS[..]).prop_map(str::to_owned),
        "-?[1-9][0-9]{0,29}(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?",
    ];
    let leaf = prop_oneof![
        prop::sample::select(&["null", "true", "false"][..])
            .prop_map(|word| Tree::Plain(word.to_owned())),
        number.prop_map(Tree::Plain),
        text.clone().prop_map(Tree::Text),
    ];
    leaf.prop_recursive(24, 120, 6, move |inner| {
        prop_oneof![
            prop::collection::vec((inner.clone(), any::<u8>()), 0..6).prop_map(Tree::List),
            object_of(text.clone(), inner),
        ]
    })
}

fn object_of(
    text: impl Strategy<Value = Spelled>,
    inner: impl Strategy<Value = Tree>,
) -> impl Strategy<Value = Tree> {
    prop::collection::vec((text, inner, any::<u8>()), 0..6).prop_map(|members| {
        let mut seen = BTreeSet::new();
        let name = |key: &[(char, u8)]| key.iter().map(|(c, _)| *c).collect::<String>();
        Tree::Object(
            members
                .into_iter()
                .filter(|(key, ..)| seen.insert(name(key)))
                .collect(),
        )
    })
}

/// The text of an object, with white space of every kind inside.
fn object() -> impl Strategy<Value = String> {
    object_of(text(), tree()).prop_map(|tree| spelled(&tree))
}

fn spelled(tree: &Tree) -> String {
    let mut out = String::new();
    spell(tree, &mut out);
    out
}

fn spell(tree: &Tree, out: &mut String) {
    match tree {
        Tree::Plain(word) => out.push_str(word),
        Tree::Text(text) => spell_text(text, out),
        Tree::List(items) => {
            out.push('[');
            for (at, (item, gap)) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(blank(*gap));
                spell(item, out);
                out.push_str(blank(gap.rotate_left(2)));
            }
            out.push(']');
        }
        Tree::Object(members) => {
            out.push('{');
            for (at, (key, value, gap)) in members.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(blank(*gap));
                spell_text(key, out);
                out.push_str(blank(gap.rotate_left(2)));
                out.push(':');
                out.push_str(blank(gap.rotate_left(4)));
                spell(value, out);
                out.push_str(blank(gap.rotate_left(6)));
            }
            out.push('}');
        }
    }
}

const fn blank(gap: u8) -> &'static str {
    match gap & 3 {
        0 | 1 => "",
        2 => " ",
        _ => " \t",
    }
}

/// Each character plain where it may be, or escaped in one of the ways there are.
fn spell_text(text: &[(char, u8)], out: &mut String) {
    out.push('"');
    for (c, how) in text {
        let short = match c {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '/' if how % 3 == 0 => Some("\\/"),
            '\n' if how % 2 == 0 => Some("\\n"),
            '\u{8}' if how % 2 == 0 => Some("\\b"),
            _ => None,
        };
        if let Some(short) = short {
            out.push_str(short);
        } else if *c < ' ' || how % 4 == 1 {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let upper = how % 8 == 5;
                if upper {
                    write!(out, "\\u{unit:04X}")
                } else {
                    write!(out, "\\u{unit:04x}")
                }
                .unwrap();
            }
        } else {
            out.push(*c);
        }
    }
    out.push('"');
}

/// Texts in which nobody finds anything, in several scripts.
const WORDS: [&str; 20] = [
    "plain",
    "Über den Wolken",
    "größer als 3",
    "naïve café",
    "夏の夜",
    "письмо",
    "שלום",
    "नमस्ते",
    "👍",
    "a/b\\c",
    "\"quoted\"",
    "two\nlines\tand a tab",
    "{\"json\":[1]}",
    "x < y && y > z",
    "50 %",
    "it's",
    "snake_case-kebab.dot",
    "$100",
    "",
    " ",
];

/// A text of such words, each character plain or escaped.
fn clean_text() -> impl Strategy<Value = Spelled> {
    let words = prop::sample::select([&NAMES[..], &WORDS].concat());
    (prop::collection::vec(words, 0..4), any::<u8>()).prop_map(|(words, seed)| {
        let text = words.join(" ");
        let spell = |(at, c)| {
            let at = u8::try_from(at % 256).unwrap();
            (c, seed.wrapping_mul(31).wrapping_add(at))
        };
        text.chars().enumerate().map(spell).collect()
    })
}

/// A payload in which no detector has anything to find, as text.
fn clean_object() -> impl Strategy<Value = String> {
    object_of(clean_text(), tree_of(clean_text().boxed())).prop_map(|tree| spelled(&tree))
}

/// How a gateway and its one server are set up.
#[derive(Debug, Clone, Copy)]
struct Way {
    pair: Pairing,
    wire: Wire,
    /// Whether the server answers on an event stream, with a notification first.
    streams: bool,
    /// Whether content is looked at as it is by default.
    looks: bool,
    cases: u32,
}

/// How the server is reached.
#[derive(Debug, Clone, Copy)]
enum Wire {
    Http,
    Pipe,
    /// The two endpoints of 2024-11-05.
    Sse,
}

/// A gateway whose one tool answers what the test wants.
struct Echo {
    runtime: Runtime,
    notes: Upstream,
    client: Client,
    answer: Arc<Mutex<String>>,
    streams: bool,
    _gateway: Gateway,
}

impl Echo {
    fn new(way: Way) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let answer = Arc::new(Mutex::new(String::new()));
        let said = Arc::clone(&answer);
        let (notes, gateway, client) = runtime.block_on(async {
            let notes = match way.wire {
                Wire::Http => way.pair.upstream(),
                Wire::Pipe => Upstream::pipe(way.pair.upstream),
                Wire::Sse => Upstream::sse(),
            };
            let notes = notes.tools([tool("t")]);
            notes.now_on("tools/call", move |_| {
                let result = Play::Result(said.lock().unwrap().clone());
                if way.streams {
                    Play::Events(vec![PROGRESS.to_owned()], Box::new(result))
                } else {
                    result
                }
            });
            let mut gateway = Gateway::of().upstream("notes", &notes);
            if !way.looks {
                // Any text at all: what holds control characters, or looks like a secret, would be stopped.
                gateway = gateway.setting(UNSEEN);
            }
            let gateway = gateway.start().await;
            let client = way.pair.client(&gateway).await;
            (notes, gateway, client)
        });
        Self {
            runtime,
            notes,
            client,
            answer,
            streams: way.streams,
            _gateway: gateway,
        }
    }

    /// Sends arguments, gets a result; says what arrived on either side.
    fn exchange(&self, arguments: &str, result: &str) -> (String, String) {
        result.clone_into(&mut self.answer.lock().unwrap());
        let token = if self.streams {
            r#""progressToken":"p""#
        } else {
            ""
        };
        let answer = self
            .runtime
            .block_on(async { self.client.call("notes_t", arguments).meta(token).await });
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.events().len(),
            usize::from(self.streams),
            "{answer:?}"
        );
        (self.notes.last("tools/call").arguments(), answer.result())
    }
}

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}"#;

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
}

fn arrive_byte_for_byte(way: Way, payload: BoxedStrategy<String>) {
    let echo = Echo::new(way);
    let payloads = (payload.clone(), payload.clone(), payload);
    let run = runner(way.cases).run(&payloads, |(arguments, structured, unknown)| {
        let result = format!(
            r#"{{"x-first":{unknown},"content":[ {{"type":"text","text":"t","x":{unknown}}} ] ,"structuredContent":{structured},"isError":false}}"#
        );
        let (heard, told) = echo.exchange(&arguments, &result);
        prop_assert_eq!(heard, arguments);
        let told: Vec<_> =
            members(&told).into_iter().filter(|(key, _)| key != "resultType" && key != "_meta").collect();
        prop_assert_eq!(told, members(&result));
        Ok(())
    });
    run.unwrap();
}

fn payloads_arrive_byte_for_byte(pair: Pairing) {
    let way = Way {
        pair,
        wire: Wire::Http,
        streams: false,
        looks: false,
        cases: CASES,
    };
    arrive_byte_for_byte(way, object().boxed());
}

/// Every test of this macro is one way, on each pairing.
macro_rules! ways {
    ($($name:ident: $way:expr, $payload:expr;)+) => {
        $(mod $name {
            use super::*;

            fn behaviour(pair: Pairing) {
                let way: fn(Pairing) -> Way = $way;
                arrive_byte_for_byte(way(pair), $payload.boxed());
            }

            #[test]
            fn legacy_client_legacy_server() {
                behaviour(Pairing::LEGACY_LEGACY);
            }

            #[test]
            fn legacy_client_modern_server() {
                behaviour(Pairing::LEGACY_MODERN);
            }

            #[test]
            fn modern_client_legacy_server() {
                behaviour(Pairing::MODERN_LEGACY);
            }

            #[test]
            fn modern_client_modern_server() {
                behaviour(Pairing::MODERN_MODERN);
            }
        })+
    };
}

ways! {
    clean_payloads_arrive_byte_for_byte_where_content_is_looked_at:
        |pair| Way { pair, wire: Wire::Http, streams: false, looks: true, cases: CASES }, clean_object();
    clean_payloads_arrive_byte_for_byte_on_a_stream_where_content_is_looked_at:
        |pair| Way { pair, wire: Wire::Http, streams: true, looks: true, cases: FEWER }, clean_object();
    payloads_arrive_byte_for_byte_on_a_stream:
        |pair| Way { pair, wire: Wire::Http, streams: true, looks: false, cases: FEWER }, object();
    payloads_arrive_byte_for_byte_from_and_to_a_program:
        |pair| Way { pair, wire: Wire::Pipe, streams: false, looks: false, cases: FEWER }, object();
    payloads_arrive_byte_for_byte_from_and_to_a_program_that_tells_of_progress:
        |pair| Way { pair, wire: Wire::Pipe, streams: true, looks: true, cases: FEWER }, clean_object();
}

/// The two-endpoint transport of 2024-11-05, to clients of either era.
#[test]
fn payloads_arrive_byte_for_byte_over_two_endpoints() {
    for client in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for streams in [false, true] {
            let way = |looks| Way {
                pair: Pairing::of(client, Revision::V2024_11_05),
                wire: Wire::Sse,
                streams,
                looks,
                cases: FEWER,
            };
            arrive_byte_for_byte(way(false), object().boxed());
            arrive_byte_for_byte(way(true), clean_object().boxed());
        }
    }
}

#[test]
fn payloads_arrive_byte_for_byte_from_legacy_to_legacy() {
    payloads_arrive_byte_for_byte(Pairing::LEGACY_LEGACY);
}

#[test]
fn payloads_arrive_byte_for_byte_from_legacy_to_modern() {
    payloads_arrive_byte_for_byte(Pairing::LEGACY_MODERN);
}

#[test]
fn payloads_arrive_byte_for_byte_from_modern_to_legacy() {
    payloads_arrive_byte_for_byte(Pairing::MODERN_LEGACY);
}

#[test]
fn payloads_arrive_byte_for_byte_from_modern_to_modern() {
    payloads_arrive_byte_for_byte(Pairing::MODERN_MODERN);
}

pairings! {
    async fn a_result_that_needs_no_change_is_the_upstreams_own_text(pair: Pairing) {
        let result = r#"{ "content" : [ ] , "structuredContent":{"n":1.0} }"#;
        let notes =
            pair.upstream().tools([tool("t")]).on("tools/call", move |_| Play::Result(result.into()));
        let (_gateway, client) = pair.alone(&notes).await;
        let told = client.call("notes_t", "{}").await.result();
        assert!(told.starts_with(r#"{ "content" : [ ] , "structuredContent":{"n":1.0}"#), "{told}");
        if pair.client == pair.upstream && !pair.client_is_modern() {
            assert_eq!(told, result);
        }
    }
}

pairings! {
    async fn a_definition_keeps_the_spelling_of_what_nobody_knows(pair: Pairing) {
        let schema = r#"{"type":"object","properties":{"n":{"maximum":1E400,"default":-0.0,"x":"\u00e9"}},"__proto__":{"a":1}}"#;
        let notes = pair
            .upstream()
            .tools([format!(r#"{{"x-a":1.00,"name":"t","inputSchema":{schema},"x-z":[ 1 ]}}"#)]);
        let (_gateway, client) = pair.alone(&notes).await;
        let result = client.ask("tools/list", "{}").await.result();
        let tools = member(&result, "tools").unwrap();
        let one = tools.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap();
        let told = members(one);
        let keys: Vec<_> = told.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["x-a", "name", "inputSchema", "x-z"]);
        assert_eq!(told[0].1, "1.00");
        assert_eq!(told[2].1, schema);
        assert_eq!(told[3].1, "[ 1 ]");
    }
}

pairings! {
    async fn prompts_contents_and_completions_keep_their_spelling_too(pair: Pairing) {
        let extra = r#"{"n":1E2,"s":"\u0041","__proto__":[ ]}"#;
        let messages = format!(r#"{{"description":"\u0064","messages":[{{"role":"user","content":{{"type":"text","text":"a\/b"}},"x":{extra}}}],"x":{extra}}}"#);
        let contents = format!(r#"{{"contents":[{{"uri":"n://a","text":"a\/b","x":{extra}}}],"x":{extra}}}"#);
        let values = format!(r#"{{"completion":{{"values":["\u0061"],"total":1.0,"x":{extra}}}}}"#);
        let (m, c, v) = (messages.clone(), contents.clone(), values.clone());
        let notes = pair
            .upstream()
            .prompts(&["p"])
            .on("prompts/get", move |_| Play::Result(m.clone()))
            .on("resources/read", move |_| Play::Result(c.clone()))
            .on("completion/complete", move |_| Play::Result(v.clone()));
        let (_gateway, client) = pair.alone(&notes).await;
        let got = client.ask("prompts/get", r#"{"name":"notes_p"}"#).await.result();
        assert_eq!(member(&got, "messages"), member(&messages, "messages"));
        assert_eq!((member(&got, "x").as_deref(), member(&got, "description").as_deref()), (Some(extra), Some(r#""\u0064""#)));
        let got = client.read("notes+n://a").await.result();
        let wanted = contents.replace(r#""n://a""#, r#""notes+n://a""#);
        assert_eq!(member(&got, "contents"), member(&wanted, "contents"));
        let params = r#"{"ref":{"type":"ref/prompt","name":"notes_p"},"argument":{"name":"a","value":"\u0062"}}"#;
        let got = client.ask("completion/complete", params).await.result();
        assert_eq!(member(&got, "completion"), member(&values, "completion"));
        let heard = notes.last("completion/complete").params;
        assert_eq!(member(&heard, "argument").as_deref(), Some(r#"{"name":"a","value":"\u0062"}"#));
    }
}

pairings! {
    /// PROTOCOL E, Icons: nobody is sent to a server's hosts for what its links look like.
    async fn of_a_links_icons_goes_on_what_does_in_lists(pair: Pairing) {
        const CARRIED: &str = r#"{ "src" : "DATA:image\/png;base64,iVBORw0KGgo=" }"#;
        let [gone, some, all] = [
            r#""uri":"n://a","icons":[{"src":"https://tracker.example/i"}],"_meta":{"progressToken":1},"name" : "a""#.to_owned(),
            format!(r#""icons":[{{"src":"http://x.example"}},{CARRIED}],"uri":"n://b","name":"b","_meta":{{"progressToken":1,"a/b":1.0}}"#),
            format!(r#""name":"c","icons":[ {CARRIED} ],"uri":"n://c""#),
        ];
        let link = |members: &str| format!(r#"{{"type":"resource_link",{members}}}"#);
        let links = [&gone, &some, &all].map(|members| link(members)).join(",");
        let text = r#"{"type":"text","text":"t","icons":[{"src":"https://kept.example"}]}"#;
        let called = format!(r#"{{"content":[{links},{text}]}}"#);
        let got = format!(r#"{{"messages":[{{"role":"user","content":{}}}]}}"#, link(&gone));
        let notes = pair
            .upstream()
            .tools([tool("t")])
            .prompts(&["p"])
            .on("tools/call", move |_| Play::Result(called.clone()))
            .on("prompts/get", move |_| Play::Result(got.clone()));
        let (_gateway, client) = pair.alone(&notes).await;
        let wanted = [
            r#""uri":"notes+n://a","name" : "a""#.to_owned(),
            format!(r#""icons":[{CARRIED}],"uri":"notes+n://b","name":"b","_meta":{{"a/b":1.0}}"#),
            all.replace("n://c", "notes+n://c"),
        ];
        let [first, ..] = &wanted;
        let links = wanted.iter().map(|members| link(members)).collect::<Vec<_>>().join(",");
        let told = client.call("notes_t", "{}").await.result();
        assert_eq!(member(&told, "content").unwrap(), format!("[{links},{text}]"));
        let told = client.ask("prompts/get", r#"{"name":"notes_p"}"#).await.result();
        assert_eq!(member(&told, "messages").unwrap(), format!(r#"[{{"role":"user","content":{}}}]"#, link(first)));
    }
}

pairings! {
    async fn repeated_members_are_refused_in_either_direction(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| {
            Play::Raw(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[],"x":{"é":1,"\u00e9":2}}}"#.into())
        });
        let (_gateway, client) = pair.alone(&notes).await;
        let refused = client.call("notes_t", r#"{"é":1,"\u00e9":2}"#).await;
        assert_eq!((refused.status, refused.refusal()), (400, (-32700, "duplicate_member".to_owned())));
        assert!(notes.heard("tools/call").is_empty());
        let broken = client.call("notes_t", r#"{"a":{"x":1},"b":{"x":1}}"#).await;
        assert_eq!(broken.tool_error(), "upstream_protocol_error");
    }
}
