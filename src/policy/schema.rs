//! The schema: what policies may speak of, with the arguments filled in.
//!
//! Cedar knows types of entities, not of single ones, and has no open records; so one static schema cannot say that `repo` is a
//! string of this tool and absent from that one, and an action for each tool would make every policy cost a validation for
//! each. Instead a policy is validated against the schema in which `context.args` has just the members that this policy looks
//! at, with the types that the tools in its scope declare for them. Tools that agree in those, as most do, are one schema, so a
//! set costs about one validation a policy however many tools there are.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use cedar_policy::{
    Entities, PolicySet, Schema, SchemaFragment, ValidationError, ValidationMode, Validator,
    ffi::DetailedError,
};
use strsim::osa_distance;

use super::rule::Rule;
use crate::call::IdentityKind;

/// The schema as it is published.
pub(super) const TEXT: &str = include_str!("../../policies/usher.cedarschema");

/// Where arguments go.
const ARGS: &str = "type Args = {};";

/// Schemas that are kept; when there are more, all are forgotten.
const KEPT: usize = 1_024;

/// The published schema with these arguments: `{ "repo": String }`.
pub(super) fn with_args(args: &str) -> String {
    TEXT.replace(ARGS, &format!("type Args = {args};"))
}

/// The type of a kind of identity in policies.
pub(super) const fn type_of(kind: IdentityKind) -> &'static str {
    match kind {
        IdentityKind::Anonymous => "Anonymous",
        IdentityKind::User => "User",
        IdentityKind::Agent => "Agent",
        IdentityKind::Key => "Key",
    }
}

/// The actions with the groups they are in.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub(super) fn actions() -> &'static Entities {
    // INVARIANT: the schema is a constant, and `the_schema_is_one` reads it.
    static ACTIONS: LazyLock<Entities> = LazyLock::new(|| {
        let (schema, _) = Schema::from_cedarschema_str(TEXT).expect("the schema is one");
        schema.action_entities().expect("actions have a hierarchy")
    });
    &ACTIONS
}

/// What is wrong with a policy where its arguments are of these types; and whether it can never apply.
pub(super) fn check(rule: &Rule, args: &str) -> (Vec<DetailedError>, bool) {
    let Some(validator) = validator(args) else {
        let error = format!("the arguments {args} make no schema");
        return (
            vec![DetailedError {
                message: error,
                help: None,
                code: None,
                url: None,
                severity: None,
                source_locations: Vec::new(),
                related: Vec::new(),
            }],
            false,
        );
    };
    let Ok(set) = PolicySet::from_policies([rule.cedar.clone()]) else {
        return (Vec::new(), false);
    };
    let result = validator.validate(&set, ValidationMode::Strict);
    let errors = result.validation_errors().map(told);
    let never = result.validation_warnings().any(|warning| {
        matches!(
            warning,
            cedar_policy::ValidationWarning::ImpossiblePolicy(_)
        )
    });
    (errors.collect(), never)
}

/// An error of the validator. For an unknown name it suggests one by a likeness under which `cal` may as well be `ask`, and of
/// equals any: instead the nearest is suggested, of equals the first in the alphabet.
fn told(error: &ValidationError) -> DetailedError {
    let (known, before) = if matches!(error, ValidationError::UnrecognizedActionId(_)) {
        (&NAMES.actions, "unrecognized action `")
    } else if matches!(error, ValidationError::UnrecognizedEntityType(_)) {
        (&NAMES.types, "unrecognized entity type `")
    } else {
        return error.into();
    };
    let mut told = DetailedError::from(error);
    let suggests = told.help.as_deref();
    if suggests.is_some_and(|help| help.starts_with("did you mean"))
        && let Some((_, name)) = told.message.rsplit_once(before)
    {
        let name = name.trim_end_matches('`');
        let nearest = known.iter().min_by_key(|known| osa_distance(name, known));
        told.help = nearest.map(|known| format!("did you mean `{known}`?"));
    }
    told
}

/// What the schema has names for, each in the order of the alphabet.
#[derive(Default)]
struct Names {
    actions: Vec<String>,
    types: Vec<String>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let Ok((schema, _)) = Schema::from_cedarschema_str(TEXT) else {
        return Names::default();
    };
    let mut names = Names {
        actions: schema.actions().map(ToString::to_string).collect(),
        types: schema.entity_types().map(ToString::to_string).collect(),
    };
    names.actions.sort_unstable();
    names.types.sort_unstable();
    names
});

/// The validator for these arguments. Schemas are remembered: sets that are loaded anew look at the same arguments.
fn validator(args: &str) -> Option<Arc<Validator>> {
    // A std mutex: held while a schema is looked up or made, never in a call.
    static MADE: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(validator) = made.get(args) {
        return Some(validator.clone());
    }
    static BASE: LazyLock<Option<SchemaFragment>> = LazyLock::new(|| {
        let (base, _) = SchemaFragment::from_cedarschema_str(&TEXT.replace(ARGS, "")).ok()?;
        Some(base)
    });
    let (fragment, _) =
        SchemaFragment::from_cedarschema_str(&format!("type Args = {args};")).ok()?;
    let schema = Schema::from_schema_fragments([BASE.clone()?, fragment]).ok()?;
    let validator = Arc::new(Validator::new(schema));
    if made.len() >= KEPT {
        made.clear();
    }
    made.insert(args.to_owned(), validator.clone());
    Some(validator)
}
