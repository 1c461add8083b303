//! Cedar called naively: every policy, every entity, the whole context, nothing kept. What the engine is compared with.
//!
//! Shares nothing with the engine but the schema's text: entities and arguments are put together here from JSON.

#![expect(
    clippy::disallowed_types,
    reason = "what the engine does with slices of JSON, this does with trees"
)]

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    sync::LazyLock,
};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityId, EntityUid, PolicySet, Request,
    RestrictedExpression as Value, Schema,
};
use serde_json::Value as Tree;

use super::*;

/// Every policy and every entity but the principal.
pub(super) struct Naive {
    policies: PolicySet,
    /// Every one but whoever asks.
    entities: Entities,
    /// The same with somebody who asked before.
    asked: RefCell<HashMap<String, Entities>>,
    /// Whether some policy looks at arguments as text, which differ from call to call.
    reads_text: bool,
    /// For each group, those it is in directly.
    parents: BTreeMap<&'static str, Vec<&'static str>>,
}

/// Everything that one call brings with it.
pub(super) struct Bringing<'a> {
    pub(super) args: &'a Tree,
    pub(super) scopes: &'a [&'a str],
    pub(super) client: Option<&'a str>,
    pub(super) toolset: Option<&'a str>,
}

fn uid(ty: &str, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(ty.parse().expect("a type"), EntityId::new(id))
}

fn text(text: &str) -> Value {
    Value::new_string(text.to_owned())
}

impl Naive {
    pub(super) fn new(
        policies: &str,
        items: &[Item],
        parents: BTreeMap<&'static str, Vec<&'static str>>,
    ) -> Self {
        // Read once: it is the same for every case, and most of what a case costs.
        static ACTIONS: LazyLock<Entities> = LazyLock::new(|| {
            let (schema, _) = Schema::from_cedarschema_str(schema::TEXT).expect("the schema");
            schema.action_entities().expect("actions")
        });
        let mut entities: Vec<Entity> = ACTIONS.iter().cloned().collect();
        entities.extend(items.iter().map(of_item));
        for (group, above) in &parents {
            let above = above.iter().map(|name| uid("Group", name));
            entities.push(Entity::new_no_attrs(uid("Group", group), above.collect()));
        }
        Self {
            policies: policies.parse().expect("policies"),
            entities: Entities::from_entities(entities, None).expect("entities"),
            asked: RefCell::default(),
            reads_text: policies.contains("context.text"),
            parents,
        }
    }

    /// Whether Cedar permits, without any error.
    pub(super) fn permits(
        &self,
        who: &Identity,
        action: Action,
        item: &Item,
        bringing: &Bringing<'_>,
    ) -> bool {
        let principal = uid(&format!("{:?}", who.kind), &who.name);
        let mut asked = self.asked.borrow_mut();
        let key = format!("{principal} {:?}", who.groups);
        let known = asked
            .entry(key)
            .or_insert_with(|| self.with(&principal, who));
        let mut holding = None;
        let mut pairs = vec![
            (
                "scopes".to_owned(),
                Value::new_set(bringing.scopes.iter().map(|scope| text(scope))),
            ),
            ("revision".to_owned(), text("2026-07-28")),
            ("time".to_owned(), Value::new_datetime("1970-01-01")),
        ];
        for (key, value) in [("client", bringing.client), ("toolset", bringing.toolset)] {
            pairs.extend(value.map(|value| (key.to_owned(), text(value))));
        }
        if action == Action::Call {
            let mut tags = Vec::new();
            flatten("", bringing.args, &mut tags);
            let holder = uid("Text", "all");
            holding = Some(Entity::new_with_tags(holder.clone(), [], [], tags).expect("entity"));
            pairs.push(("args".to_owned(), record(bringing.args)));
            pairs.push(("text".to_owned(), Value::new_entity_uid(holder)));
        }
        let kind = match item.kind {
            ItemKind::Tool => "Tool",
            ItemKind::Prompt => "Prompt",
            ItemKind::Resource | ItemKind::Template => "Resource",
        };
        let request = Request::new(
            principal,
            uid("Action", action.name()),
            uid(kind, &item.outward),
            Context::from_pairs(pairs).expect("a context"),
            None,
        )
        .expect("a request");
        let with_text = holding.filter(|_| self.reads_text).map(|holder| {
            let all = known.clone().add_entities([holder], None);
            all.expect("entities")
        });
        let entities = with_text.as_ref().unwrap_or(known);
        let response = Authorizer::new().is_authorized(&request, &self.policies, entities);
        response.decision() == Decision::Allow && response.diagnostics().errors().next().is_none()
    }

    /// Every entity, and somebody who asks.
    fn with(&self, principal: &EntityUid, who: &Identity) -> Entities {
        let groups = who.groups.iter().map(|group| uid("Group", group));
        let attributes = [("name".to_owned(), text(&who.name))];
        let own = Entity::new(principal.clone(), attributes.into(), groups.collect());
        let mut more = vec![own.expect("entity")];
        for group in &who.groups {
            if !self.parents.contains_key(&**group) {
                more.push(Entity::with_uid(uid("Group", group)));
            }
        }
        let all = self.entities.clone().add_entities(more, None);
        all.expect("entities")
    }
}

fn of_item(item: &Item) -> Entity {
    let tags = item.tags.iter().map(|tag| text(tag));
    let mut attributes = vec![
        ("name", text(&item.outward)),
        ("upstream", text(item.upstream.as_str())),
        ("tags", Value::new_set(tags)),
    ];
    let kind = match item.kind {
        ItemKind::Tool => {
            attributes.push(("local", text(&item.local)));
            let flags = |hints: Hints| {
                [
                    ("read_only", hints.read_only),
                    ("destructive", hints.destructive),
                    ("idempotent", hints.idempotent),
                    ("open_world", hints.open_world),
                ]
                .into_iter()
                .filter_map(|(key, flag)| Some((key, Value::new_bool(flag?))))
            };
            attributes.extend(flags(item.pinned));
            let claimed = flags(item.claimed).map(|(key, flag)| (key.to_owned(), flag));
            attributes.push(("claimed", Value::new_record(claimed).expect("a record")));
            "Tool"
        }
        ItemKind::Prompt => {
            attributes.push(("local", text(&item.local)));
            "Prompt"
        }
        ItemKind::Resource | ItemKind::Template => {
            let (scheme, rest) = item.local.split_once("://").expect("a plain URI");
            let (host, path) = rest.split_once('/').expect("a plain URI");
            attributes.push(("uri", text(&item.local)));
            attributes.push(("scheme", text(scheme)));
            attributes.push(("host", text(host)));
            attributes.push(("path", text(&format!("/{path}"))));
            "Resource"
        }
    };
    let parents = item.toolsets.iter().map(|toolset| uid("Toolset", toolset));
    let parents: HashSet<EntityUid> = parents
        .chain([uid("Upstream", item.upstream.as_str())])
        .collect();
    let attributes = attributes
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    Entity::new(uid(kind, &item.outward), attributes.collect(), parents).expect("entity")
}

fn record(args: &Tree) -> Value {
    fn value(tree: &Tree) -> Option<Value> {
        Some(match tree {
            Tree::Bool(value) => Value::new_bool(*value),
            Tree::Number(number) => Value::new_long(number.as_i64()?),
            Tree::String(string) => text(string),
            Tree::Array(items) => Value::new_set(items.iter().filter_map(value)),
            Tree::Object(_) => record(tree),
            Tree::Null => return None,
        })
    }
    let members = args.as_object().expect("an object").iter();
    let members = members.filter_map(|(key, tree)| Some((key.clone(), value(tree)?)));
    Value::new_record(members).expect("a record")
}

fn flatten(prefix: &str, tree: &Tree, out: &mut Vec<(String, Value)>) {
    for (key, tree) in tree.as_object().expect("an object") {
        let name = format!("{prefix}{key}");
        match tree {
            Tree::Object(_) => flatten(&format!("{name}."), tree, out),
            Tree::String(string) => out.push((name, text(string))),
            Tree::Number(number) if number.is_i64() => {
                out.push((name, text(&number.to_string())));
            }
            Tree::Bool(value) => out.push((name, text(&value.to_string()))),
            Tree::Number(_) | Tree::Array(_) | Tree::Null => {}
        }
    }
}
