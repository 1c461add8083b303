//! Rules about what is inside a value: elements, members and their names, and what no other rule has looked at.

use std::collections::HashSet;

use super::{
    notes::{Present, Rules, Seen, Step, Sum, Three},
    rule::{Contains, Id, Items, Members, Rule, Words},
    run::{Enough, Known, Run, seek, walk},
    told,
};
use crate::json::{Json, Kind, Node, canonical};

impl<'a> Run<'a> {
    pub(super) fn unevaluated(
        &mut self,
        words: &'a Words,
        value: Node<'a>,
        own: &mut Option<Seen>,
        sum: &mut Sum,
    ) -> Result<(), Enough> {
        let Some(own) = own else { return Ok(()) };
        if let (Some(id), Kind::Object) = (words.unevaluated_members, value.kind()) {
            self.spend(walk(value))?;
            for (at, member) in value.members().enumerate() {
                let step = Step::Unnamed(member.key);
                sum.add(self.unevaluated_one(step, id, member.value, own.has(at))?);
                own.mark(at, Three::Yes);
            }
        }
        if let (Some(id), Kind::Array) = (words.unevaluated_items, value.kind()) {
            self.spend(walk(value))?;
            for (at, element) in value.elements().enumerate() {
                sum.add(self.unevaluated_one(Step::Element(at), id, element, own.has(at))?);
                own.mark(at, Three::Yes);
            }
        }
        Ok(())
    }

    /// What is asked of a member or element that no other rule has looked at.
    fn unevaluated_one(&mut self, step: Step<'a>, id: Id, value: Node<'a>, seen: Three) -> Known {
        self.spend(1)?;
        match seen {
            Three::Yes => Ok(Three::Yes),
            Three::No => self.below(step, id, value),
            Three::Unknown => match self.untold(|run| run.below(step, id, value))? {
                Three::Yes => Ok(Three::Yes),
                // If it was looked at, nothing is asked of it.
                Three::No | Three::Unknown => Ok(Three::Unknown),
            },
        }
    }

    pub(super) fn items(
        &mut self,
        items: &'a Items,
        value: Node<'a>,
        mut seen: Option<&mut Seen>,
    ) -> Known {
        let mut sum = Sum(Three::Yes);
        let mut count = 0;
        let mut texts = HashSet::new();
        self.spend(walk(value))?;
        for (at, element) in value.elements().enumerate() {
            self.spend(1)?;
            count += 1;
            let rule = items.first.get(at).copied().or(items.rest);
            if let Some(rule) = rule {
                sum.add(self.below(Step::Element(at), rule, element)?);
                if let Some(seen) = &mut seen {
                    seen.mark(at, Three::Yes);
                }
            }
            if items.unique && sum.0 != Three::No {
                self.spend(8 + element.raw_bytes().len() / 8)?;
                if !texts.insert(canonical(element)) {
                    self.tell(|| "must not have the same element twice".to_owned());
                    sum.add(Three::No);
                }
            }
            if self.is_over(&sum) {
                return Ok(Three::No);
            }
        }
        sum.add(self.bounds(count, items.min, items.max, "elements"));
        if let Some(contains) = &items.contains {
            sum.add(self.contains(contains, value, seen)?);
        }
        Ok(sum.0)
    }

    fn contains(
        &mut self,
        contains: &Contains,
        value: Node<'a>,
        mut seen: Option<&mut Seen>,
    ) -> Known {
        let (mut fitting, mut unknown) = (0, 0);
        self.spend(walk(value))?;
        for (at, element) in value.elements().enumerate() {
            let known = self.tried(contains.rule, element, None)?;
            match known {
                Three::No => {}
                Three::Yes => fitting += 1,
                Three::Unknown => unknown += 1,
            }
            if let Some(seen) = seen.as_mut().filter(|_| contains.marks) {
                seen.mark(at, known);
            }
        }
        let above = |count: u64| contains.max.is_some_and(|max| count > max);
        let known = if fitting + unknown < contains.min || above(fitting) {
            Three::No
        } else if fitting < contains.min || above(fitting + unknown) {
            Three::Unknown
        } else {
            Three::Yes
        };
        let mut sum = Sum(Three::Yes);
        self.expect(known, &mut sum, |schema| told::contains(schema, contains));
        Ok(sum.0)
    }

    pub(super) fn members(
        &mut self,
        members: &'a Members,
        value: Node<'a>,
        mut seen: Option<&mut Seen>,
    ) -> Known {
        let mut sum = Sum(Three::Yes);
        let mut present = Present::default();
        let mut count = 0;
        self.spend(walk(value))?;
        for (at, member) in value.members().enumerate() {
            self.spend(1)?;
            count += 1;
            let mut rules = Rules::default();
            let named = members.named.get(&*member.key);
            let step = || match named {
                Some(_) => Step::Named(member.key.clone()),
                None => Step::Unnamed(member.key.clone()),
            };
            if let Some(named) = named {
                if let Some(required) = named.required {
                    present.add(required);
                }
                rules.named = named.rule;
            }
            self.patterned(members, &member.key, &mut rules)?;
            let additional = members
                .additional
                .filter(|_| rules.named.is_none() && rules.patterned.is_empty());
            if let Some(additional) = additional {
                // It may be one of those whose pattern cannot be judged.
                let is_never = matches!(self.schema.rules[additional], Rule::Never);
                if rules.unsure {
                    sum.add(Three::Unknown);
                } else if !is_never {
                    rules.additional = Some(additional);
                } else if named.is_some() || !self.lets_in(members, &member.key) {
                    self.path.push(step());
                    self.tell(|| told::unwanted(members));
                    self.path.pop();
                    sum.add(Three::No);
                }
            }
            if rules.unsure {
                sum.add(Three::Unknown);
            }
            if let Some(seen) = &mut seen {
                seen.mark(at, rules.any());
            }
            if let Some(names) = members.names {
                sum.add(self.name(names, &member.key)?);
            }
            for rule in rules
                .named
                .into_iter()
                .chain(rules.additional)
                .chain(rules.patterned)
            {
                sum.add(self.below(step(), rule, member.value)?);
            }
            if self.is_over(&sum) {
                return Ok(Three::No);
            }
        }
        let beyond = members.required.len().saturating_sub(64);
        self.spend(beyond * seek(value))?;
        for (at, name) in members.required.iter().enumerate() {
            if !present.has(at, || value.member(name).is_some()) {
                self.spend(1)?;
                self.tell(|| format!("must have `{}`", told::shown(name)));
                sum.add(Three::No);
            }
        }
        for (first, others) in &members.together {
            self.spend((1 + others.len()) * seek(value))?;
            if value.member(first).is_some() {
                for other in others.iter().filter(|other| value.member(other).is_none()) {
                    self.tell(|| {
                        format!(
                            "must have `{}` with `{}`",
                            told::shown(other),
                            told::shown(first)
                        )
                    });
                    sum.add(Three::No);
                }
            }
        }
        sum.add(self.bounds(count, members.min, members.max, "members"));
        Ok(sum.0)
    }

    fn patterned(&mut self, members: &Members, key: &str, rules: &mut Rules) -> Result<(), Enough> {
        for (pattern, rule) in &members.patterned {
            self.spend(1)?;
            let Some(pattern) = pattern else {
                rules.unsure = true;
                continue;
            };
            self.spend(pattern.steps(key))?;
            if pattern.is_match(key) {
                rules.patterned.push(*rule);
            }
        }
        Ok(())
    }

    /// A rule about a member's name.
    fn name(&mut self, rule: Id, name: &str) -> Known {
        let text = Json::string(name);
        let mut run = Run::new(self.schema, self.steps);
        run.depth = self.depth;
        let known = run.rule(rule, text.root(), None);
        self.steps = run.steps;
        let known = known?;
        if known == Three::No {
            let schema = self.schema;
            self.tell(|| format!("must have names that are {}", told::rule(schema, rule)));
        }
        Ok(known)
    }

    /// A rule about something inside the value.
    fn below(&mut self, step: Step<'a>, rule: Id, value: Node<'a>) -> Known {
        self.path.push(step);
        let known = self.rule(rule, value, None);
        self.path.pop();
        known
    }
}
