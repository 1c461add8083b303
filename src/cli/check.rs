//! `usher check`: whether a configuration and its policies are right, and with `--connect` whether its upstreams are there.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    time::SystemTime,
};

use clap::Args as ClapArgs;
use http::Uri;

use super::{
    Ended,
    gateway::Own,
    out, policy, shown,
    source::{Source, counted, draw},
};
use crate::{
    app::{UpstreamStatus, failing_cases, unfit_policies},
    auth::spec::AuthSpec,
    catalog::rules::ToolsetRules,
    config::{Plan, PolicyPlan, RENEWAL, Rejected},
    glob,
    json::Json,
    limits::{Dimension, Rule},
    policy::{Item, ItemKind, Policy, Problem},
    protocol::{UpstreamId, meta},
    sanitize::rules::UpstreamRules,
    upstream::spec::{Endpoint, UpstreamSpec},
};

/// Check a configuration: every problem at once, with file, line, column and a hint
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher check                           usher.yaml: keys, values, secrets, certificates, files; and its policies
  usher check -c prod.yaml --connect    and reach every upstream
  usher check --json | jq '.problems'

Exit codes: 0 fine, 1 an upstream is away or its lists cannot be read (--connect), 2 the configuration is wrong, or its policies are,
do not fit, or break cases that are enforced")]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// Also reach every upstream, and say its revision, era and what it offers
    #[arg(long)]
    connect: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    let loaded = args.source.examine();
    let policies = policy_dir(&args, loaded.as_ref()).map(|dir| Policy::load(&dir));
    let ((plan, mut notes), policy) = match (loaded, policies.transpose()) {
        (Ok(loaded), Ok(policy)) => (loaded, policy),
        (loaded, policies) => {
            let wrong = policies.err().unwrap_or_default();
            return refused(&args, loaded.err().as_ref(), &wrong, &[]);
        }
    };
    let governed = plan.policy.clone().zip(policy);
    let summary = summary(&args, &plan, governed.as_ref().map(|(_, policy)| policy));
    notes.extend(noted(&plan));
    notes.extend(
        governed
            .as_ref()
            .and_then(|(_, policy)| pooled(&plan, policy)),
    );
    if args.connect {
        return Box::pin(reached(&args, plan, governed, notes, &summary)).await;
    }
    if let Some((governing, policy)) = governed {
        let items = policy.case_items();
        let mut wrong = failing_cases(&governing, &policy, items);
        if !governing.enforce_cases {
            notes.extend(wrong.drain(..).map(|case| in_a_line(&case)));
        }
        let prepared = policy.prepare(items.to_vec(), None);
        wrong.extend_from_slice(prepared.problems());
        if !wrong.is_empty() {
            return refused(&args, None, &wrong, &notes);
        }
    }
    if args.json {
        out::line(outcome(true, &[], &notes, None).as_str());
    } else {
        notes.iter().for_each(|note| out::line(note));
        out::line(&summary);
    }
    Ended::Well
}

/// The directory of the policies, whatever is wrong with the rest; `None` where there are none, or where that is told already.
fn policy_dir(args: &Args, loaded: Result<&(Plan, Vec<String>), &Rejected>) -> Option<PathBuf> {
    match loaded {
        Ok((plan, _)) => Some(plan.policy.as_ref()?.dir.clone()),
        Err(rejected) => {
            let mut problems = rejected.problems.iter();
            let told = problems.any(|problem| problem.path == "policy.dir");
            (!told).then(|| args.source.policy_dir())?
        }
    }
}

/// What a check comes to as JSON, which has the same members whatever that is; what is known of the upstreams where they were
/// reached.
fn outcome(ok: bool, problems: &[Json], notes: &[String], upstreams: Option<&[Json]>) -> Json {
    let mut members = vec![
        ("ok", Json::of(&ok)),
        ("problems", Json::array(problems)),
        ("notes", Json::of(notes)),
    ];
    members.extend(upstreams.map(|upstreams| ("upstreams", Json::array(upstreams))));
    meta::object_of(&members)
}

/// Tells everything that is wrong with the configuration and with its policies.
fn refused(
    args: &Args,
    rejected: Option<&Rejected>,
    policies: &[Problem],
    notes: &[String],
) -> Ended {
    let of_file = rejected.map_or(&[][..], |rejected| &rejected.problems);
    if args.json {
        let problems = of_file.iter().map(Json::of);
        let problems: Vec<Json> = problems.chain(policies.iter().map(Json::of)).collect();
        out::line(outcome(false, &problems, notes, None).as_str());
    } else {
        if let Some(rejected) = rejected {
            draw(rejected);
            if !policies.is_empty() {
                out::note("");
            }
        }
        policy::wrong(policies);
        counted(of_file.len() + policies.len());
    }
    Ended::Misused
}

/// What a configuration that is right may not be meant to say.
fn noted(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.upstreams.is_empty() {
        notes.push(
            "nothing is configured: without `upstreams` the endpoint is empty; `usher import` takes over what other programs have"
                .to_owned(),
        );
    }
    if plan.auth.is_some() && plan.policy.is_none() {
        notes.push(
            "`auth` without `policy`: nobody may use anything; `usher init --operator YOU` writes policies that permit you alone, \
             `policy: { dir: policies }` puts them in force"
                .to_owned(),
        );
    }
    if plan.pins.forgets_approvals() {
        notes.push(
            "`definitions: { pin: quarantine }` without `state.dir`: what servers offer when the gateway starts counts as approved, and \
             what they change later nobody can approve before the next start; add `state: { dir: state }`"
                .to_owned(),
        );
    }
    notes.extend(plan.loaded.in_clear().iter().map(|path| {
        format!(
            "{path} may be a secret that stands in the file: `${{env:NAME}}` keeps it out of it"
        )
    }));
    let soon = plan.ending_before(SystemTime::now() + RENEWAL);
    notes.extend(soon.into_iter().map(|(path, day)| {
        format!("{path} expires on {day}; from then on usher does not start with it")
    }));
    notes
}

/// That policies go by names which several can give.
fn pooled(plan: &Plan, policy: &Policy) -> Option<String> {
    let authorities = plan.auth.as_ref().map_or(0, AuthSpec::authorities);
    Some(policy.pooled(authorities)?.to_string())
}

/// Reaches the upstreams, and tells how they are and whether the policies fit what they offer.
async fn reached(
    args: &Args,
    plan: Plan,
    governed: Option<(PolicyPlan, Policy)>,
    mut notes: Vec<String>,
    summary: &str,
) -> Ended {
    let (addresses, unproven) = (addresses(&plan), unproven(&plan));
    let (sets, limits) = (plan.catalog.toolsets.clone(), plan.limits.rules.clone());
    let content = plan.sanitize.upstreams.clone();
    let (statuses, items) = match connect(plan).await {
        Ok(seen) => seen,
        Err(ended) => return ended,
    };
    let well = statuses.iter().all(UpstreamStatus::is_well);
    if well {
        // Of what is away, or shows no list, nobody knows what it would offer.
        notes.extend(idle(&sets, &items));
        notes.extend(limiting_nothing(&limits, &items));
        notes.extend(looking_at_nothing(&content, &items));
    }
    let unfit = governed.map_or_else(Vec::new, |(plan, policy)| {
        if !plan.enforce_cases {
            let failing = failing_cases(&plan, &policy, &items);
            notes.extend(failing.iter().map(in_a_line));
        }
        unfit_policies(&plan, &policy, items)
    });
    if args.json {
        let problems: Vec<Json> = unfit.iter().map(Json::of).collect();
        let list = statuses.iter().map(|status| Json::of(&Status::of(status)));
        let list: Vec<Json> = list.collect();
        let ok = well && unfit.is_empty();
        out::line(outcome(ok, &problems, &notes, Some(&list)).as_str());
    } else {
        notes.iter().for_each(|note| out::line(note));
        if unfit.is_empty() {
            out::line(summary);
        }
        if !statuses.is_empty() {
            out::line(&format!("\n{}", shown::statuses(&statuses)));
        }
        for status in &statuses {
            if let Some(hint) = addresses
                .get(&status.id)
                .and_then(|url| path_hint(status, url))
            {
                out::line(&format!("{}: {hint}", status.id));
            }
            if unproven.contains(&status.id) && asks_for_login(status) {
                out::line(&format!("{}: {LOGIN}", status.id));
            }
            for report in &status.reports {
                out::line(&format!("{}: {}", status.id, out::tame(report)));
            }
        }
        if !unfit.is_empty() {
            policy::wrong(&unfit);
            counted(unfit.len());
        }
    }
    match (unfit.is_empty(), well) {
        (false, _) => Ended::Misused,
        (true, false) => Ended::Failed,
        (true, true) => Ended::Well,
    }
}

/// How the upstreams are and what they offer; if that is not known, the reason has been told.
async fn connect(plan: Plan) -> Result<(Vec<UpstreamStatus>, Vec<Item>), Ended> {
    let (own, statuses) = Own::settled(plan).await?;
    let items = own.app().snapshot().items();
    own.close().await?;
    Ok((statuses, items))
}

/// What toolsets select by and nothing answers to: as a rule a slip, and else a selection that is empty.
fn idle(sets: &[ToolsetRules], items: &[Item]) -> Vec<String> {
    let mut notes = Vec::new();
    for set in sets {
        for (what, globs, kinds) in [
            ("tools", &set.tools, &[ItemKind::Tool][..]),
            ("prompts", &set.prompts, &[ItemKind::Prompt]),
            (
                "resources",
                &set.resources,
                &[ItemKind::Resource, ItemKind::Template],
            ),
        ] {
            let there = |glob: &str| {
                let of_kind = |item: &&Item| kinds.contains(&item.kind);
                let mut there = items.iter().filter(of_kind);
                there.any(|item| glob::matches(glob, &item.outward))
            };
            let idle = globs.iter().filter(|glob| !there(glob));
            notes.extend(idle.map(|glob| {
                format!(
                    "toolsets.{}.{what}: `{glob}` matches none of the {what} that are there; `usher catalog` lists them",
                    set.name
                )
            }));
        }
    }
    notes
}

/// Limits that name a tool which is not there: as a rule a slip, and else a limit on nothing.
fn limiting_nothing(rules: &[Rule], items: &[Item]) -> Vec<String> {
    let tools = || items.iter().filter(|item| item.kind == ItemKind::Tool);
    let of_tools = |rule: &Rule| {
        let only = rule.only.iter();
        let mut only = only.filter(|(dimension, _)| *dimension == Dimension::Tool);
        only.any(|(_, pattern)| !tools().any(|item| pattern.means(&item.outward)))
    };
    let idle = rules.iter().filter(|rule| of_tools(rule));
    let note = |rule: &Rule| {
        format!("limits: `{rule}` is of no tool that is there; `usher catalog` lists them")
    };
    idle.map(note).collect()
}

/// Rules about content for tools that are not there: as a rule a slip, and else what is looked at as anywhere.
fn looking_at_nothing(rules: &BTreeMap<UpstreamId, UpstreamRules>, items: &[Item]) -> Vec<String> {
    let mut notes = Vec::new();
    for (upstream, rules) in rules {
        let tools = items
            .iter()
            .filter(|item| item.kind == ItemKind::Tool && item.upstream == *upstream);
        for (glob, _) in &rules.tools {
            if !tools.clone().any(|item| glob::matches(glob, &item.local)) {
                notes.push(format!(
                    "upstreams.{upstream}.sanitize.tools: `{glob}` matches no tool that is there; `usher catalog` lists them"
                ));
            }
        }
    }
    notes
}

fn summary(args: &Args, plan: &Plan, policy: Option<&Policy>) -> String {
    let count = |number: usize, word| out::count(number as u64, word);
    let policies = match policy.map(Policy::count) {
        None => String::new(),
        Some(1) => ", 1 policy".to_owned(),
        Some(count) => format!(", {count} policies"),
    };
    format!(
        "{}: {}, {}, {}{policies}",
        args.source.path().display(),
        out::paint(out::GREEN, "fine"),
        count(plan.upstreams.len(), "upstream"),
        count(plan.catalog.toolsets.len(), "toolset"),
    )
}

/// A case that is not enforced, as it is noted.
fn in_a_line(case: &Problem) -> String {
    let Problem {
        file,
        line,
        message,
        ..
    } = case;
    out::tame(&format!(
        "{file}:{line}: {message}; `usher policy test` runs all cases, `policy.enforce_cases` refuses policies that break one"
    ))
}

/// The addresses of the upstreams that have one.
fn addresses(plan: &Plan) -> HashMap<UpstreamId, Uri> {
    let address = |spec: &UpstreamSpec| match &spec.endpoint {
        Endpoint::Http(http) => Some((spec.id.clone(), http.url.clone())),
        Endpoint::Stdio(_) => None,
    };
    plan.upstreams.iter().filter_map(address).collect()
}

/// The upstreams that are asked without anything that proves who asks.
fn unproven(plan: &Plan) -> HashSet<UpstreamId> {
    let unproven = plan
        .upstreams
        .iter()
        .filter(|spec| !spec.has_credential() && !plan.connect.accounts.contains_key(&spec.id));
    unproven.map(|spec| spec.id.clone()).collect()
}

/// What to try when a server asks for a login and none is configured.
const LOGIN: &str = "`auth: { authorization_code: {} }` has each user log in to it, `auth: { bearer: \"${env:TOKEN}\" }` sends one token for all";

fn asks_for_login(status: &UpstreamStatus) -> bool {
    let error = status.error.as_deref();
    error.is_some_and(|error| error.contains("asks for a login"))
}

/// What to try when a server answers that there is nothing at its address.
fn path_hint(status: &UpstreamStatus, url: &Uri) -> Option<String> {
    let error = status.error.as_deref()?;
    let missing = ["HTTP 404", "HTTP 405"]
        .into_iter()
        .find(|answer| error.contains(answer))?;
    let path = url.path().trim_end_matches('/');
    if status.state == "ready" || path.ends_with("/mcp") {
        return None;
    }
    let (scheme, authority) = (url.scheme_str()?, url.authority()?);
    Some(format!(
        "{missing} says that no MCP server is at this path; most are at `/mcp`: try {scheme}://{authority}{path}/mcp"
    ))
}

/// A status as JSON.
#[derive(serde::Serialize)]
struct Status<'a> {
    upstream: &'a str,
    state: &'a str,
    revision: Option<&'a str>,
    era: Option<&'a str>,
    tools: usize,
    prompts: usize,
    resources: usize,
    templates: usize,
    error: Option<&'a str>,
    reports: &'a [String],
}

impl<'a> Status<'a> {
    fn of(status: &'a UpstreamStatus) -> Self {
        let [tools, prompts, resources, templates] = status.counts;
        Self {
            upstream: status.id.as_str(),
            state: status.state,
            revision: status.revision.map(crate::protocol::Revision::as_str),
            era: status.revision.map(shown::era),
            tools,
            prompts,
            resources,
            templates,
            error: status.error.as_deref(),
            reports: &status.reports,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        config,
        limits::{Amount, Glob, Pattern, Rate},
        policy::Hints,
        sanitize::rules::Actions,
    };

    fn item(kind: ItemKind, outward: &str) -> Item {
        Item {
            kind,
            upstream: UpstreamId::parse("git").expect("a key"),
            outward: outward.into(),
            local: outward.into(),
            tags: Vec::new(),
            pinned: Hints::default(),
            claimed: Hints::default(),
            toolsets: Vec::new(),
            schema: None,
        }
    }

    /// What each note is about.
    fn places(told: &[String]) -> Vec<&str> {
        let about = |note: &'_ String| note.find(" matches");
        let places = told
            .iter()
            .map(|note| &note[..about(note).expect("a place")]);
        places.collect()
    }

    #[test]
    fn an_outcome_has_the_same_members_whether_all_is_well_or_not() {
        let members = |json: &Json| {
            let members = json.root().members();
            members
                .map(|member| member.key.into_owned())
                .collect::<Vec<_>>()
        };
        for ok in [true, false] {
            assert_eq!(
                members(&outcome(ok, &[], &[], None)),
                ["ok", "problems", "notes"]
            );
        }
        let reached = outcome(true, &[], &["a note".to_owned()], Some(&[]));
        assert_eq!(
            reached.as_str(),
            r#"{"ok":true,"problems":[],"notes":["a note"],"upstreams":[]}"#
        );
    }

    #[test]
    fn changes_that_nobody_can_approve_are_told() {
        let told = |text: &str| {
            let plan = config::of_text(text).expect("a configuration");
            let notes = noted(&plan);
            notes
                .iter()
                .filter(|note| note.contains("quarantine"))
                .count()
        };
        let upstream = "upstreams: { one: { command: [cat], definitions: { pin: quarantine } } }\n";
        assert_eq!(told(upstream), 1);
        assert_eq!(told(&upstream.replace("quarantine", "watch")), 0);
        assert_eq!(told(&format!("{upstream}state: {{ dir: state }}\n")), 0);
        assert_eq!(told("definitions: { pin: quarantine }\n"), 0, "of nobody");
    }

    #[test]
    fn a_limit_on_a_tool_that_is_not_there_is_told() {
        let rate = Rate {
            calls: 1,
            period: Duration::from_secs(60),
            burst: 1,
        };
        let rule = |pattern| Rule {
            per: vec![Dimension::Principal],
            only: vec![(Dimension::Tool, pattern)],
            amount: Amount::Rate(rate),
        };
        let like = |glob| Pattern::Like(Glob::parse(glob).expect("a glob"));
        let rules = [
            rule(Pattern::Exactly("git_log".into())),
            rule(Pattern::Exactly("git_lgo".into())),
            rule(Pattern::Exactly("git_review".into())),
            rule(like("git_*")),
            rule(like("gti_*")),
        ];
        let items = [
            item(ItemKind::Tool, "git_log"),
            item(ItemKind::Prompt, "git_review"),
        ];
        let told = limiting_nothing(&rules, &items);
        let named = ["git_lgo", "git_review", "gti_*"];
        assert_eq!(told.len(), named.len(), "{told:?}");
        for (note, name) in told.iter().zip(named) {
            assert!(
                note.starts_with("limits: ") && note.contains(name),
                "{note}"
            );
        }
    }

    #[test]
    fn content_rules_for_a_tool_that_is_not_there_are_told() {
        let globs = ["git_*", "git_lgo"].map(|glob| (glob.to_owned(), Actions::default()));
        let rules = UpstreamRules {
            tools: globs.into(),
            ..UpstreamRules::default()
        };
        let of = |key: &str| UpstreamId::parse(key).expect("a key");
        let rules = [(of("git"), rules.clone()), (of("other"), rules)].into();
        let items = [
            item(ItemKind::Tool, "git_log"),
            item(ItemKind::Prompt, "git_lgo"),
        ];
        let told = looking_at_nothing(&rules, &items);
        assert_eq!(
            places(&told),
            [
                "upstreams.git.sanitize.tools: `git_lgo`",
                "upstreams.other.sanitize.tools: `git_*`",
                "upstreams.other.sanitize.tools: `git_lgo`",
            ]
        );
    }

    #[test]
    fn what_a_toolset_selects_by_and_nothing_answers_to_is_told() {
        let items = [
            item(ItemKind::Tool, "git_log"),
            item(ItemKind::Prompt, "git_review"),
            item(ItemKind::Template, "repo://{path}"),
        ];
        let globs = |globs: &[&str]| globs.iter().map(|&glob| glob.to_owned()).collect();
        let set = ToolsetRules {
            name: "dev".into(),
            tools: globs(&["git_*", "gti_*", "git_review"]),
            prompts: globs(&["*"]),
            resources: globs(&["repo://*", "file://*"]),
            upstreams: Vec::new(),
        };
        let told = idle(&[set], &items);
        assert_eq!(
            places(&told),
            [
                "toolsets.dev.tools: `gti_*`",
                "toolsets.dev.tools: `git_review`",
                "toolsets.dev.resources: `file://*`"
            ]
        );
    }

    #[test]
    fn an_address_that_answers_404_or_405_without_the_usual_path_gets_a_hint() {
        let status = |state, error: &str| UpstreamStatus {
            id: UpstreamId::parse("a").expect("a key"),
            state,
            revision: None,
            counts: [0; 4],
            error: Some(error.to_owned()),
            unread: false,
            reports: Vec::new(),
        };
        let hint = |state, error, url: &str| {
            path_hint(&status(state, error), &url.parse().expect("an address"))
        };
        for (url, better) in [
            ("https://host.example", "https://host.example/mcp"),
            ("https://host.example:1/", "https://host.example:1/mcp"),
            ("http://localhost/api/", "http://localhost/api/mcp"),
        ] {
            for error in ["x: HTTP 404 without a message", "HTTP 405"] {
                let hint = hint("away", error, url).expect("a hint");
                assert!(hint.ends_with(&format!("try {better}")), "{hint}");
            }
        }
        assert_eq!(hint("away", "HTTP 404", "https://host.example/mcp/"), None);
        assert_eq!(hint("away", "HTTP 503", "https://host.example/"), None);
        assert_eq!(hint("ready", "HTTP 404", "https://host.example/"), None);
    }
}
