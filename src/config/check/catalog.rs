//! Names and selections: prefixes, renames, toolsets, pages.

use std::{collections::HashMap, sync::Arc};

use super::{Check, globs, limits, policy, validate};
use crate::{
    catalog::rules::{
        CatalogRules, Charset, NameRules, NamingRules, PageRules, Selection, ToolsetRules,
    },
    config::{
        hint,
        raw::{Alphabet, Names, PageSize, Toolset, Upstream, Validate, bounds::Bounds},
        units::Ordered,
    },
    protocol::UpstreamId,
};

/// Everything that shapes the catalog.
pub(super) fn rules(
    check: &mut Check<'_>,
    upstreams: &Ordered<Upstream>,
    toolsets: &Ordered<Toolset>,
    names: &Names,
    pages: &PageSize,
    bounds: &Bounds,
    validation: &Validate,
) -> CatalogRules {
    let default = PageRules::default();
    CatalogRules {
        upstreams: naming(check, upstreams, validation),
        toolsets: toolsets
            .0
            .iter()
            .filter_map(|(name, raw)| toolset(check, name, raw, upstreams))
            .collect(),
        names: NameRules {
            max: check.count(
                &["names", "max"],
                names.max,
                NameRules::default().max,
                (16, 128),
            ),
            charset: match names.charset {
                None | Some(Alphabet::Strict) => Charset::Strict,
                Some(Alphabet::Spec) => Charset::Spec,
            },
        },
        pages: PageRules {
            items: check.count(
                &["page_size", "items"],
                pages.items,
                default.items,
                (1, 10_000),
            ),
            bytes: check.size(
                &["page_size", "bytes"],
                pages.bytes,
                default.bytes,
                (4 << 10, 16 << 20),
            ),
        },
        bounds: limits::offer(check, bounds),
        screen: Default::default(),
    }
}

fn naming(
    check: &mut Check<'_>,
    upstreams: &Ordered<Upstream>,
    validation: &Validate,
) -> Vec<NamingRules> {
    let mut taken: HashMap<&str, &str> = HashMap::new();
    let mut all = Vec::new();
    for (key, raw) in &upstreams.0 {
        let prefix = raw.prefix.as_deref().unwrap_or(key);
        let path = ["upstreams", key.as_str(), "prefix"];
        if let Some(written) = &raw.prefix
            && !is_prefix(written)
        {
            check.wrong(
                &path,
                "not a prefix",
                "a letter, then letters, digits and `-`, at most 32; no `_`, which ends a prefix; or \"\" for none",
            );
        }
        if let Some(first) = taken.insert(prefix, key) {
            let which = if prefix.is_empty() {
                "no prefix".to_owned()
            } else {
                format!("the prefix `{prefix}`")
            };
            check.wrong(
                &path,
                format!("`{key}` and `{first}` both have {which}"),
                "give one of them another `prefix`",
            );
        }
        selection(check, key, raw);
        let Some(upstream) = UpstreamId::parse(key) else {
            continue;
        };
        let default = Selection::default();
        all.push(NamingRules {
            upstream,
            prefix: Arc::from(prefix),
            tools: Selection {
                allow: raw.tools.allow.clone().unwrap_or(default.allow),
                deny: raw.tools.deny.clone(),
            },
            rename: raw.tools.rename.clone(),
            describe: raw.tools.describe.clone(),
            labels: policy::labels(check, key, raw),
            validation: validate::rules(check, key, validation, raw),
            claims: Arc::default(),
        });
    }
    all
}

fn selection(check: &mut Check<'_>, key: &str, raw: &Upstream) {
    let tools = ["upstreams", key, "tools"];
    let at = |rest: &'static str| [tools[0], tools[1], tools[2], rest];
    globs(
        check,
        &at("allow"),
        raw.tools.allow.as_deref().unwrap_or_default(),
    );
    globs(check, &at("deny"), &raw.tools.deny);
    let mut taken: HashMap<&str, &str> = HashMap::new();
    for (from, to) in &raw.tools.rename {
        let path = [tools[0], tools[1], tools[2], "rename", from.as_str()];
        let well_formed = (1..=128).contains(&to.len())
            && to
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        if !well_formed {
            check.wrong(
                &path,
                "not a tool name",
                "letters, digits, `_`, `-` and `.`, at most 128",
            );
        }
        if let Some(first) = taken.insert(to, from) {
            let message = format!("`{first}` and `{from}` cannot both be called `{to}`");
            check.wrong(&path, message, "");
        }
    }
}

fn is_prefix(prefix: &str) -> bool {
    prefix.len() <= UpstreamId::MAX_BYTES
        && prefix.bytes().enumerate().all(|(index, byte)| {
            byte.is_ascii_alphabetic() || index > 0 && (byte.is_ascii_digit() || byte == b'-')
        })
}

fn toolset(
    check: &mut Check<'_>,
    name: &str,
    raw: &Toolset,
    upstreams: &Ordered<Upstream>,
) -> Option<ToolsetRules> {
    let at = |key: &'static str| ["toolsets", name, key];
    let named = UpstreamId::parse(name).is_some();
    if name == "u" {
        check.wrong_key(
            &["toolsets", name],
            "`u` cannot be the name of a toolset",
            "`/mcp/u/…` is where single upstreams are",
        );
    } else if !named {
        check.wrong_key(
            &["toolsets", name],
            "not a name for a toolset",
            "a small letter, then small letters, digits and `-`, at most 32",
        );
    }
    globs(check, &at("tools"), &raw.tools);
    globs(check, &at("prompts"), &raw.prompts);
    globs(check, &at("resources"), &raw.resources);
    let known: Vec<&str> = upstreams.0.iter().map(|(key, _)| key.as_str()).collect();
    let mut members = Vec::new();
    for (index, key) in raw.upstreams.iter().enumerate() {
        if known.contains(&key.as_str()) {
            members.extend(UpstreamId::parse(key));
        } else {
            check.wrong(
                &["toolsets", name, "upstreams", &index.to_string()],
                format!("there is no upstream `{key}`"),
                hint::unknown("upstream", key, &known),
            );
        }
    }
    let empty = raw.tools.is_empty()
        && raw.prompts.is_empty()
        && raw.resources.is_empty()
        && raw.upstreams.is_empty();
    if empty {
        check.missing(
            &["toolsets", name],
            "this toolset selects nothing",
            "give it `tools`, `prompts`, `resources` or `upstreams`",
        );
    }
    named.then(|| ToolsetRules {
        name: Arc::from(name),
        tools: raw.tools.clone(),
        prompts: raw.prompts.clone(),
        resources: raw.resources.clone(),
        upstreams: members,
    })
}
