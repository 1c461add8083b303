//! From a directory to a compiled set: all or nothing, every problem with its place (SECURITY AUTHZ-3).

use std::{
    collections::{BTreeSet, HashMap},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::digest::{Context, SHA256};
use cedar_policy::{PolicyId, PolicySet, ffi::DetailedError};

use super::{
    cases::Cases,
    groups::{self, Groups},
    infer::infer,
    mention::claims_forbid_only,
    problem::{Problem, position},
    rule::{Literal, Rule, Scope, permits, without_scope},
    schema,
};

/// A file of a set, at most.
const FILE_BYTES: u64 = 1024 * 1024;
/// Policies of a set, at most.
const RULES: usize = 10_000;
/// The file with the schema.
const SCHEMA: &str = "usher.cedarschema";
/// Annotations that mean something, and those that are for readers alone.
const ANNOTATIONS: [&str; 6] = ["id", "require", "within", "reason", "description", "owner"];

/// A set that was read: nothing is wrong with it.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rules: Vec<Rule>,
    pub(super) names: HashMap<PolicyId, usize>,
    pub(super) groups: Groups,
    pub(super) cases: Cases,
    pub(super) digest: Arc<str>,
    pub(super) files: Vec<File>,
    pub(super) notes: Vec<Problem>,
    /// Every entity that a policy names.
    pub(super) literals: BTreeSet<Literal>,
}

/// One file of a set.
#[derive(Debug, Clone)]
pub(super) struct File {
    /// Its path as told to people.
    pub(super) name: String,
    pub(super) text: String,
}

/// Reads the files of a directory that belong to a set, in the order of their names.
pub(super) fn files(dir: &Path) -> Result<Vec<File>, Vec<Problem>> {
    let shown = dir.display().to_string();
    let entries = std::fs::read_dir(dir)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| {
            let problem = Problem::of_file(&shown, format!("cannot be read: {error}"));
            vec![problem.hint(
                "`policy.dir` names the directory; `usher init --operator YOU` writes policies to begin with",
            )]
        })?;
    let mut paths: Vec<_> = entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| belongs(name) && !name.starts_with('.'))
        })
        .collect();
    paths.sort();
    let mut files = Vec::new();
    let mut problems = Vec::new();
    problems.extend(open_to_others(dir, "directory"));
    for path in paths {
        let name = path.display().to_string();
        problems.extend(open_to_others(&path, "file"));
        let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if size > FILE_BYTES {
            problems.push(Problem::of_file(&name, "longer than 1 MiB"));
            continue;
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => files.push(File { name, text }),
            Err(error) => {
                problems.push(Problem::of_file(&name, format!("cannot be read: {error}")));
            }
        }
    }
    if problems.is_empty() {
        Ok(files)
    } else {
        Err(problems)
    }
}

/// A place that others may write to decides nothing (SECURITY OPS-1): whoever may write there says who may do what. Nobody may
/// on a mount that is only read, whatever the mode, which is how orchestrators hand a set to a container.
fn open_to_others(path: &Path, kind: &str) -> Option<Problem> {
    use nix::sys::statvfs::{FsFlags, statvfs};
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    let is_only_read = || statvfs(path).is_ok_and(|at| at.flags().contains(FsFlags::ST_RDONLY));
    if mode & 0o022 == 0 || is_only_read() {
        return None;
    }
    let shown = path.display();
    let message = format!(
        "others may write to this {kind} (mode {:03o})",
        mode & 0o777
    );
    let problem = Problem::of_file(&shown.to_string(), message);
    Some(problem.hint(format!("it says who may do what: chmod go-w {shown}")))
}

fn belongs(name: &str) -> bool {
    name.ends_with(".cedar") || [groups::FILE, super::cases::FILE, SCHEMA].contains(&name)
}

/// Compiles files to a set.
pub(super) fn compile(dir: &str, files: Vec<File>) -> Result<Compiled, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut rules = Vec::new();
    let mut groups = Groups::default();
    let mut cases = Cases::default();
    let mut notes = Vec::new();
    let mut context = Context::new(&SHA256);
    for (index, file) in files.iter().enumerate() {
        let name = file.name.rsplit(['/', '\\']).next().unwrap_or_default();
        if name != super::cases::FILE {
            for part in [name, &file.text] {
                context.update(&(part.len() as u64).to_le_bytes());
                context.update(part.as_bytes());
            }
        }
        if name == groups::FILE {
            match Groups::parse(&file.name, &file.text) {
                Ok(read) => groups = read,
                Err(problem) => problems.push(problem),
            }
        } else if name == super::cases::FILE {
            match super::cases::parse(&file.name, &file.text) {
                Ok(read) => cases = read,
                Err(problem) => problems.push(problem),
            }
        } else if name == SCHEMA {
            if file.text.replace("\r\n", "\n") != schema::TEXT {
                let note = "not the schema of this version, which is the one that holds";
                notes.push(
                    Problem::of_file(&file.name, note)
                        .hint("write it anew: `usher policy schema > usher.cedarschema`"),
                );
            }
        } else {
            read_rules(index, file, &mut rules, &mut problems);
        }
    }
    if rules.is_empty() && problems.is_empty() {
        problems.push(
            Problem::of_file(dir, "no policy is in here, so nothing would be permitted")
                .hint("write one to a file that ends in `.cedar`; `usher policy --help` shows how"),
        );
    }
    if rules.len() > RULES {
        problems.push(Problem::of_file(dir, format!("more than {RULES} policies")));
    }
    let names = named(&rules, &files, &mut problems);
    for rule in &rules {
        validate(rule, &files[rule.file], &mut problems, &mut notes);
    }
    if !problems.is_empty() {
        problems.sort();
        problems.dedup();
        return Err(problems);
    }
    let digest = context.finish();
    let hex: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut literals = BTreeSet::new();
    for rule in &rules {
        literals.extend(rule.mentions.entities.iter().cloned());
        literals.extend(rule.principal.literal().cloned());
        literals.extend(rule.resource.literal().cloned());
    }
    Ok(Compiled {
        rules,
        names,
        groups,
        cases,
        digest: hex.into(),
        files,
        notes,
        literals,
    })
}

/// The policies of a file.
fn read_rules(index: usize, file: &File, rules: &mut Vec<Rule>, problems: &mut Vec<Problem>) {
    let set: PolicySet = match file.text.parse() {
        Ok(set) => set,
        Err(errors) => {
            let errors: cedar_policy::ParseErrors = errors;
            problems.extend(errors.iter().map(|error| {
                let error = DetailedError::from(error);
                Problem::of_cedar(&file.name, &file.text, 0, &error)
            }));
            return;
        }
    };
    for template in set.templates() {
        let at = template.as_ref().loc().map_or(0, |loc| loc.start());
        problems.push(
            Problem::at(
                &file.name,
                &file.text,
                at,
                "a template, which nothing links",
            )
            .hint("write the entity instead of `?principal` or `?resource`"),
        );
    }
    let mut found: Vec<Rule> = Vec::new();
    for policy in set.policies() {
        let span = policy
            .as_ref()
            .loc()
            .map_or(0..0, |loc| loc.start()..loc.end());
        let mut say = |problem: &str, hint: &str| {
            problems.push(Problem::at(&file.name, &file.text, span.start, problem).hint(hint));
        };
        let scope = policy.to_pst().ok().and_then(|pst| Scope::of(&pst));
        let Some(scope) = scope else {
            say("not understood by this version", "write it more simply");
            continue;
        };
        for fault in &scope.mentions.faults {
            say(fault, "see `usher policy --help`");
        }
        let permits = permits(policy.effect());
        let mut conditions = scope.conditions.iter();
        let by_claim = if permits {
            scope.mentions.claimed
        } else {
            conditions.any(|(expr, holds)| !claims_forbid_only(expr, *holds))
        };
        if by_claim {
            say(
                "nothing is permitted because of what an upstream claims of itself",
                "pin the annotation in the configuration and write `resource.read_only`",
            );
        }
        for (key, _) in policy.annotations() {
            if !ANNOTATIONS.contains(&key) {
                say(
                    &format!("`@{key}` means nothing here"),
                    "known are @id, @require, @within, @reason, @description and @owner",
                );
            }
        }
        let within = policy.annotation("within").map(duration);
        if within == Some(None) {
            say("`@within` is no time", "write one such as @within(\"10m\")");
        }
        let approval = match policy.annotation("require") {
            Some("approval") if permits => Some(within.flatten()),
            Some("approval") => {
                say(
                    "`@require` on a `forbid`, which permits nothing",
                    "put it on the policy that permits",
                );
                None
            }
            Some(_) => {
                say(
                    "`@require` knows nothing but \"approval\"",
                    "write @require(\"approval\")",
                );
                None
            }
            None => {
                if within.is_some() {
                    say("`@within` without `@require`", "add @require(\"approval\")");
                }
                None
            }
        };
        let place = position(&file.text, span.start);
        let short = file.name.rsplit(['/', '\\']).next().unwrap_or_default();
        let line = format!("{short}:{}", place.0);
        let name: Arc<str> = match policy.annotation("id") {
            Some(id) if !id.is_empty() => id.into(),
            _ if found.iter().any(|other| *other.name == *line) => {
                format!("{line}:{}", place.1).into()
            }
            _ => line.into(),
        };
        let cedar = policy.new_id(PolicyId::new(&name));
        let Some(bare) = without_scope(&cedar) else {
            say("not understood by this version", "write it more simply");
            continue;
        };
        found.push(Rule {
            cedar,
            bare,
            name,
            permits,
            principal: scope.principal,
            actions: scope.actions,
            resource: scope.resource,
            conditions: scope.conditions,
            mentions: scope.mentions,
            approval,
            reason: policy.annotation("reason").map(Into::into),
            file: index,
            span,
            place,
        });
    }
    found.sort_by_key(|rule| rule.span.start);
    rules.append(&mut found);
}

/// The policies by name; two of one name are wrong.
fn named(rules: &[Rule], files: &[File], problems: &mut Vec<Problem>) -> HashMap<PolicyId, usize> {
    let mut names = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        if let Some(other) = names.insert(rule.cedar.id().clone(), index) {
            let other: &Rule = &rules[other];
            let file = &files[rule.file];
            let message = format!("the name `{}` is taken", rule.name);
            let hint = format!("{}:{} has it", files[other.file].name, other.place.0);
            problems.push(Problem::at(&file.name, &file.text, rule.span.start, message).hint(hint));
        }
    }
    names
}

/// Validates a policy before any tool is known.
fn validate(rule: &Rule, file: &File, problems: &mut Vec<Problem>, notes: &mut Vec<Problem>) {
    let conditions = rule.conditions.iter().map(|(expr, _)| &**expr);
    let args = infer(&rule.mentions.args, conditions).cedar();
    let (errors, never) = schema::check(rule, &args);
    let at = rule.span.start;
    problems.extend(
        errors
            .iter()
            .map(|error| Problem::of_cedar(&file.name, &file.text, at, error)),
    );
    if never && errors.is_empty() && rule.mentions.args.below.is_empty() {
        let message = format!("`{}` can never apply", rule.name);
        notes.push(
            Problem::at(&file.name, &file.text, at, message)
                .hint("its conditions are false for everything in its scope"),
        );
    }
}

/// `90s`, `10m`, `1h`.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}
