//! `validate:`: whether calls are held to the schemas of their tools.

use super::{Check, globs};
use crate::{
    catalog::rules::{OnBroken, Validation, ValidationRules},
    config::raw::{Arguments, Results, Upstream, Validate},
};

/// What holds for the tools of an upstream: what it says, else what the top says, else the default.
pub(super) fn rules(
    check: &mut Check<'_>,
    key: &str,
    top: &Validate,
    raw: &Upstream,
) -> ValidationRules {
    let own = &raw.validate;
    let all = over(
        over(Validation::default(), top.arguments, top.results),
        own.arguments,
        own.results,
    );
    let mut tools = Vec::with_capacity(own.tools.0.len());
    for (glob, one) in &own.tools.0 {
        let path = ["upstreams", key, "validate", "tools"];
        globs(check, &path, std::slice::from_ref(glob));
        tools.push((glob.clone(), over(all, one.arguments, one.results)));
    }
    ValidationRules { all, tools }
}

fn over(below: Validation, arguments: Option<Arguments>, results: Option<Results>) -> Validation {
    Validation {
        arguments: match arguments {
            None => below.arguments,
            Some(Arguments::Refuse) => OnBroken::Refuse,
            Some(Arguments::Off) => OnBroken::Off,
        },
        results: match results {
            None => below.results,
            Some(Results::Refuse) => OnBroken::Refuse,
            Some(Results::Flag) => OnBroken::Flag,
            Some(Results::Off) => OnBroken::Off,
        },
    }
}
