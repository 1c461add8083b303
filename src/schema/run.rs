//! Checking a value: a walk over rules and value at once, within a number of steps.

use std::collections::HashSet;

use super::{
    Problem, Schema, TOLD, Verdict,
    notes::{Present, Rules, Seen, Step, Sum, Three},
    rule::{Contains, Id, Items, Members, Numbers, Rule, Texts, Words},
    told,
};
use crate::json::{Decimal, Json, Kind, Node, canonical};

/// The most rules inside one another, over all levels of the value.
const DEPTH: u32 = 256;

/// Too many steps, or a number beyond all bounds.
pub(super) struct Enough;

type Known = Result<Three, Enough>;

pub(super) fn check(schema: &Schema, value: Node<'_>, steps: u32) -> Verdict {
    match fits(schema, value, steps) {
        Some(Three::Yes) => Verdict::Fits,
        Some(Three::Unknown) => Verdict::Unjudged,
        None => Verdict::TooMuch,
        Some(Three::No) => {
            let mut run = Run::new(schema, steps);
            run.told = Some(Vec::new());
            // Whatever was told before it was too much is true.
            drop(run.rule(0, value, None));
            let mut told = run.told.unwrap_or_default();
            if told.is_empty() {
                told.push(Problem {
                    path: String::new(),
                    wanted: "must fit the schema".to_owned(),
                });
            }
            Verdict::Broken(told)
        }
    }
}

/// The same without words; `None` when it would be too much.
pub(super) fn fits(schema: &Schema, value: Node<'_>, steps: u32) -> Option<Three> {
    Run::new(schema, steps).rule(0, value, None).ok()
}

struct Run<'a> {
    schema: &'a Schema,
    steps: u32,
    depth: u32,
    /// What was found, where it is wanted.
    told: Option<Vec<Problem>>,
    path: Vec<Step<'a>>,
}

impl<'a> Run<'a> {
    const fn new(schema: &'a Schema, steps: u32) -> Self {
        Self {
            schema,
            steps,
            depth: 0,
            told: None,
            path: Vec::new(),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), Enough> {
        let steps = u32::try_from(steps).map_err(|_| Enough)?;
        self.steps = self.steps.checked_sub(steps).ok_or(Enough)?;
        Ok(())
    }

    /// Whether there is no point in going on: it is broken, and nobody wants to hear of more.
    fn is_over(&self, sum: &Sum) -> bool {
        sum.0 == Three::No && self.told.as_ref().is_none_or(|told| told.len() >= TOLD)
    }

    fn rule(&mut self, id: Id, value: Node<'a>, seen: Option<&mut Seen>) -> Known {
        self.spend(1)?;
        let schema = self.schema;
        match &schema.rules[id] {
            Rule::Always => Ok(Three::Yes),
            Rule::Unknown => Ok(Three::Unknown),
            Rule::Never => {
                self.tell(|| "must not be there".to_owned());
                Ok(Three::No)
            }
            Rule::All(words) => {
                self.depth += 1;
                if self.depth > DEPTH {
                    return Err(Enough);
                }
                let known = self.words(words, value, seen);
                self.depth -= 1;
                known
            }
        }
    }

    fn words(&mut self, words: &'a Words, value: Node<'a>, seen: Option<&mut Seen>) -> Known {
        let mut sum = Sum(if words.gap {
            Three::Unknown
        } else {
            Three::Yes
        });
        // Whether one is an integer is told by reading it.
        if words.types.is_some() && value.kind() == Kind::Number {
            self.spend(value.raw_bytes().len() / 16)?;
        }
        if let Some(types) = words.types
            && !types.has(value).ok_or(Enough)?
        {
            self.tell(|| told::types(types));
            // What else it says is about other kinds of values.
            return Ok(Three::No);
        }
        for listed in &words.listed {
            self.spend(value.raw_bytes().len() / 16 + listed.len() / 4)?;
            if !listed.contains(&canonical(value)) {
                self.tell(|| told::listed(listed));
                sum.add(Three::No);
            }
        }
        let mut own = None;
        if self.schema.tracks {
            let asks = match value.kind() {
                Kind::Array => words.unevaluated_items.is_some(),
                Kind::Object => words.unevaluated_members.is_some(),
                Kind::String | Kind::Number | Kind::Bool | Kind::Null => false,
            };
            own = match seen.as_deref() {
                Some(seen) => Some(self.beside(seen)?),
                None if asks => {
                    // Many short elements are walked along with each step.
                    self.spend(1 + value.raw_bytes().len() / 64)?;
                    Some(Seen::of(value))
                }
                None => None,
            };
        }
        match value.kind() {
            Kind::Number => {
                if let Some(numbers) = &words.numbers {
                    sum.add(self.number(numbers, value)?);
                }
            }
            Kind::String => {
                if let Some(texts) = &words.texts {
                    sum.add(self.text(texts, value)?);
                }
            }
            Kind::Array => {
                if let Some(items) = &words.items {
                    sum.add(self.items(items, value, own.as_mut())?);
                }
            }
            Kind::Object => {
                if let Some(members) = &words.members {
                    sum.add(self.members(members, value, own.as_mut())?);
                    if self.is_over(&sum) {
                        return Ok(Three::No);
                    }
                    for (name, id) in &members.along {
                        self.spend(seek(value))?;
                        if value.member(name).is_some() {
                            sum.add(self.in_place(*id, value, own.as_mut())?);
                        }
                    }
                }
            }
            Kind::Bool | Kind::Null => {}
        }
        for id in &words.all {
            if self.is_over(&sum) {
                return Ok(Three::No);
            }
            sum.add(self.in_place(*id, value, own.as_mut())?);
        }
        if self.is_over(&sum) {
            return Ok(Three::No);
        }
        self.choices(words, value, &mut own, &mut sum)?;
        self.unevaluated(words, value, &mut own, &mut sum)?;
        if let (Some(seen), Some(own)) = (seen, &own) {
            seen.merge(own);
        }
        Ok(sum.0)
    }

    /// Marks for the same value, and what merging them takes.
    fn beside(&mut self, seen: &Seen) -> Result<Seen, Enough> {
        self.spend(1 + seen.0.len() / 128)?;
        Ok(Seen::beside(seen))
    }

    /// A rule about the same value. What a broken one has looked at does not count.
    fn in_place(&mut self, id: Id, value: Node<'a>, seen: Option<&mut Seen>) -> Known {
        let Some(seen) = seen else {
            return self.rule(id, value, None);
        };
        let mut own = self.beside(seen)?;
        let known = self.rule(id, value, Some(&mut own))?;
        if known != Three::No {
            seen.merge(&own);
        }
        Ok(known)
    }

    /// The same, of which nobody is told.
    fn tried(&mut self, id: Id, value: Node<'a>, seen: Option<&mut Seen>) -> Known {
        let told = self.told.take();
        let known = self.in_place(id, value, seen);
        self.told = told;
        known
    }

    fn choices(
        &mut self,
        words: &'a Words,
        value: Node<'a>,
        own: &mut Option<Seen>,
        sum: &mut Sum,
    ) -> Result<(), Enough> {
        if let Some(any) = &words.any {
            let mut known = Three::No;
            for id in any {
                match self.tried(*id, value, own.as_mut())? {
                    Three::Yes => known = Three::Yes,
                    Three::Unknown if known == Three::No => known = Three::Unknown,
                    Three::Unknown | Three::No => {}
                }
                // Others may look at what is asked for later.
                if known == Three::Yes && own.is_none() {
                    break;
                }
            }
            self.expect(known, sum, |schema| told::any(schema, any));
        }
        if let Some(one) = &words.one {
            let (mut fitting, mut unknown) = (0, 0);
            for id in one {
                match self.tried(*id, value, own.as_mut())? {
                    Three::Yes => fitting += 1,
                    Three::Unknown => unknown += 1,
                    Three::No => {}
                }
                if fitting > 1 {
                    break;
                }
            }
            let known = match (fitting, unknown) {
                (1, 0) => Three::Yes,
                (0, 0) | (2.., _) => Three::No,
                _ => Three::Unknown,
            };
            self.expect(known, sum, |schema| {
                if fitting > 1 {
                    "must fit one of several alternatives, and fits more than one".to_owned()
                } else {
                    told::any(schema, one)
                }
            });
        }
        if let Some(not) = words.not {
            let known = match self.tried(not, value, None)? {
                Three::Yes => Three::No,
                Three::No => Three::Yes,
                Three::Unknown => Three::Unknown,
            };
            self.expect(known, sum, |schema| {
                format!("must not be {}", told::rule(schema, not))
            });
        }
        if let Some((condition, then, otherwise)) = words.choice {
            let chosen = match self.tried(condition, value, own.as_mut())? {
                Three::Yes => then,
                Three::No => otherwise,
                Three::Unknown => {
                    sum.add(Three::Unknown);
                    None
                }
            };
            if let Some(chosen) = chosen {
                sum.add(self.in_place(chosen, value, own.as_mut())?);
            }
        }
        Ok(())
    }

    fn unevaluated(
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
                self.spend(1)?;
                if !own.0[at] {
                    sum.add(self.below(Step::Member(member.key), id, member.value)?);
                    own.mark(at);
                }
            }
        }
        if let (Some(id), Kind::Array) = (words.unevaluated_items, value.kind()) {
            self.spend(walk(value))?;
            for (at, element) in value.elements().enumerate() {
                self.spend(1)?;
                if !own.0[at] {
                    sum.add(self.below(Step::Element(at), id, element)?);
                    own.mark(at);
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, numbers: &Numbers, value: Node<'_>) -> Known {
        self.spend(value.raw_bytes().len() / 16)?;
        let number = Decimal::parse(value.raw()).ok_or(Enough)?;
        let mut sum = Sum(Three::Yes);
        let bounds = [
            (
                &numbers.minimum,
                "at least",
                number.cmp_to(&numbers.minimum, |order| order.is_ge()),
            ),
            (
                &numbers.above,
                "more than",
                number.cmp_to(&numbers.above, |order| order.is_gt()),
            ),
            (
                &numbers.maximum,
                "at most",
                number.cmp_to(&numbers.maximum, |order| order.is_le()),
            ),
            (
                &numbers.below,
                "less than",
                number.cmp_to(&numbers.below, |order| order.is_lt()),
            ),
        ];
        for (bound, word, holds) in bounds {
            if let (Some(bound), false) = (bound, holds) {
                self.tell(|| told::number(word, bound));
                sum.add(Three::No);
            }
        }
        if let Some(multiple) = &numbers.multiple {
            match number.is_multiple_of(multiple) {
                Some(true) => {}
                Some(false) => {
                    self.tell(|| told::number("a multiple of", multiple));
                    sum.add(Three::No);
                }
                None => sum.add(Three::Unknown),
            }
        }
        Ok(sum.0)
    }

    fn text(&mut self, texts: &Texts, value: Node<'_>) -> Known {
        let text = value.as_str().unwrap_or_default();
        self.spend(text.len() / 256)?;
        let mut sum = Sum(Three::Yes);
        if texts.min.is_some() || texts.max.is_some() {
            let length = text.chars().count() as u64;
            sum.add(self.bounds(length, texts.min, texts.max, "characters"));
        }
        if let Some(pattern) = &texts.pattern {
            self.spend(text.len() * pattern.spelled.len().div_ceil(64) / 4)?;
            if !pattern.regex.is_match(&text) {
                self.tell(|| told::pattern(&pattern.spelled));
                sum.add(Three::No);
            }
        }
        Ok(sum.0)
    }

    fn bounds(&mut self, count: u64, min: Option<u64>, max: Option<u64>, of: &str) -> Three {
        if let Some(min) = min.filter(|min| count < *min) {
            self.tell(|| format!("must have at least {min} {of}"));
            return Three::No;
        }
        if let Some(max) = max.filter(|max| count > *max) {
            self.tell(|| format!("must have at most {max} {of}"));
            return Three::No;
        }
        Three::Yes
    }

    fn items(&mut self, items: &'a Items, value: Node<'a>, mut seen: Option<&mut Seen>) -> Known {
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
                    seen.mark(at);
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
            match self.tried(contains.rule, element, None)? {
                Three::No => continue,
                Three::Yes => fitting += 1,
                Three::Unknown => unknown += 1,
            }
            if let Some(seen) = seen.as_mut().filter(|_| contains.marks) {
                seen.mark(at);
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

    fn members(
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
            if let Some(named) = members.named.get(&*member.key) {
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
                if rules.unsure {
                    sum.add(Three::Unknown);
                } else if matches!(self.schema.rules[additional], Rule::Never) {
                    let key = member.key.clone();
                    self.path.push(Step::Member(key));
                    self.tell(|| told::unwanted(members));
                    self.path.pop();
                    sum.add(Three::No);
                } else {
                    rules.additional = Some(additional);
                }
            }
            if rules.unsure {
                sum.add(Three::Unknown);
            }
            if let Some(seen) = seen.as_mut().filter(|_| rules.any()) {
                seen.mark(at);
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
                sum.add(self.below(Step::Member(member.key.clone()), rule, member.value)?);
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
        for (regex, rule) in &members.patterned {
            self.spend(1 + key.len() / 4)?;
            match regex {
                Some(regex) if regex.is_match(key) => rules.patterned.push(*rule),
                Some(_) => {}
                None => rules.unsure = true,
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

    fn expect(&mut self, known: Three, sum: &mut Sum, wanted: impl FnOnce(&Schema) -> String) {
        if known == Three::No {
            let schema = self.schema;
            self.tell(|| wanted(schema));
        }
        sum.add(known);
    }

    fn tell(&mut self, wanted: impl FnOnce() -> String) {
        let path = &self.path;
        if let Some(told) = self.told.as_mut().filter(|told| told.len() < TOLD) {
            told.push(Problem {
                path: told::path(path),
                wanted: wanted(),
            });
        }
    }
}

/// What walking along a value costs beside its members or elements: where they end is found byte by byte, and what stands
/// between them may be long.
fn walk(value: Node<'_>) -> usize {
    value.raw_bytes().len() / 256
}

/// What looking for one member costs.
fn seek(value: Node<'_>) -> usize {
    1 + value.raw_bytes().len() / 512
}

impl Decimal {
    /// Whether a bound, if there is one, holds.
    fn cmp_to(&self, bound: &Option<Self>, holds: impl FnOnce(std::cmp::Ordering) -> bool) -> bool {
        bound.as_ref().is_none_or(|bound| holds(self.cmp(bound)))
    }
}
