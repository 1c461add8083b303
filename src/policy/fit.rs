//! Whether policies fit the tools there are: each validated with the types of the arguments that it looks at.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    Action,
    class::Classes,
    laid::{Items, Laid},
    load::Compiled,
    mention::Paths,
    problem::Problem,
    rule::{Actions, Constraint, Rule},
    schema,
};

/// Tools that are named in one problem.
const NAMED: usize = 3;

/// What does not fit.
pub(super) fn problems(compiled: &Compiled, classes: &Classes, items: &Items) -> Vec<Problem> {
    let mut problems = Vec::new();
    // The types of what is looked at, for each that looks at the same.
    let mut types: HashMap<(&Paths, usize), Arc<str>> = HashMap::new();
    let with_arguments = Actions::named("call").union(Actions::named("get"));
    for rule in &compiled.rules {
        let paths = &rule.mentions.args;
        if paths.below.is_empty() || !rule.actions.meets(with_arguments) {
            continue;
        }
        let mut meant: BTreeMap<Arc<str>, Vec<&Arc<Laid>>> = BTreeMap::new();
        for (number, laid) in items.all.iter().enumerate() {
            if !may_be(rule, laid, classes) {
                continue;
            }
            let Some(shapes) = [Action::Call, Action::Get]
                .into_iter()
                .filter(|action| rule.actions.has(*action))
                .find_map(|action| laid.shapes(action))
            else {
                continue;
            };
            let args = types
                .entry((paths, number))
                .or_insert_with(|| shapes.cedar_of(paths).into());
            meant.entry(args.clone()).or_default().push(laid);
        }
        for (args, meant) in meant {
            let (errors, _) = schema::check(rule, &args);
            let Some(error) = errors.first() else {
                continue;
            };
            let file = &compiled.files[rule.file];
            let names: Vec<String> = meant
                .iter()
                .take(NAMED)
                .map(|laid| format!("`{}`", laid.item.outward))
                .collect();
            let more = match meant.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let mut problem = Problem::of_cedar(&file.name, &file.text, rule.span.start, error);
            problem.message = format!(
                "`{}` does not fit {}{more}: {}",
                rule.name,
                names.join(", "),
                problem.message
            );
            let hint = "narrow its scope, or ask first: `context.args has …`";
            problems.push(problem.hint(hint));
        }
    }
    problems.sort();
    problems
}

/// Whether the scope of a policy may mean an item.
pub(super) fn may_be(rule: &Rule, laid: &Laid, classes: &Classes) -> bool {
    let is = |ty: &str| ty == laid.type_name();
    let within = |(ty, id): &(Arc<str>, Arc<str>)| {
        classes
            .number(ty, id)
            .is_some_and(|number| laid.keys.contains(&number))
    };
    match &rule.resource {
        Constraint::Any => true,
        Constraint::Is(ty) => is(ty),
        Constraint::Eq(literal) | Constraint::In(literal) => within(literal),
        Constraint::IsIn(ty, literal) => is(ty) && within(literal),
    }
}
