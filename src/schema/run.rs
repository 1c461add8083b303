//! Checking a value: a walk over rules and value at once, within a number of steps.

use super::{
    Names, Problem, Schema, TOLD, Verdict,
    notes::{Seen, Step, Sum, Three},
    rule::{Id, Members, Rule, Words},
    told,
};
use crate::json::{Kind, Node, canonical};

/// The most rules inside one another, over all levels of the value.
const DEPTH: u32 = 256;
/// The most places that are put into words. Those that read alike are told once, and each costs what no step is taken for: a path, and
/// the names that are known.
const ALIKE: usize = 64;

/// Too many steps, or a number beyond all bounds.
pub(super) struct Enough;

pub(super) type Known = Result<Three, Enough>;

pub(super) fn check(
    schema: &Schema,
    value: Node<'_>,
    steps: u32,
    names: Names,
    strangers: &'static [&'static str],
) -> Verdict {
    match Run::with_strangers(schema, steps, strangers)
        .rule(0, value, None)
        .ok()
    {
        Some(Three::Yes) => Verdict::Fits,
        Some(Three::Unknown) => Verdict::Unjudged,
        None => Verdict::TooMuch,
        Some(Three::No) => {
            let mut run = Run::with_strangers(schema, steps, strangers);
            run.told = Some(Vec::new());
            run.names = names;
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

pub(super) struct Run<'a> {
    pub(super) schema: &'a Schema,
    pub(super) steps: u32,
    pub(super) depth: u32,
    /// What was found, where it is wanted.
    told: Option<Vec<Problem>>,
    /// How many places were put into words.
    tells: usize,
    /// Which names are.
    names: Names,
    /// The members that may stand at the root beside those that the schema knows.
    strangers: &'static [&'static str],
    pub(super) path: Vec<Step<'a>>,
}

impl<'a> Run<'a> {
    pub(super) const fn new(schema: &'a Schema, steps: u32) -> Self {
        Self::with_strangers(schema, steps, &[])
    }

    const fn with_strangers(
        schema: &'a Schema,
        steps: u32,
        strangers: &'static [&'static str],
    ) -> Self {
        Self {
            schema,
            steps,
            depth: 0,
            told: None,
            tells: 0,
            names: Names::Known,
            strangers,
            path: Vec::new(),
        }
    }

    /// Whether a member that these rules know nothing of may be there all the same. Only what the root itself says of its members is
    /// relaxed: in an alternative or a condition it could make two of them fit where one did.
    pub(super) fn lets_in(&self, members: &Members, name: &str) -> bool {
        if !self.path.is_empty() || !self.strangers.contains(&name) {
            return false;
        }
        let Some(Rule::All(root)) = self.schema.rules.first() else {
            return false;
        };
        let own = root.members.as_deref();
        own.is_some_and(|own| std::ptr::eq(own, members))
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Enough> {
        let steps = u32::try_from(steps).map_err(|_| Enough)?;
        self.steps = self.steps.checked_sub(steps).ok_or(Enough)?;
        Ok(())
    }

    /// Whether there is no point in going on: it is broken, and nobody wants to hear of more.
    pub(super) fn is_over(&self, sum: &Sum) -> bool {
        sum.0 == Three::No && !self.is_heard()
    }

    /// Whether somebody wants to hear of more.
    fn is_heard(&self) -> bool {
        self.tells < ALIKE && self.told.as_ref().is_some_and(|told| told.len() < TOLD)
    }

    pub(super) fn rule(&mut self, id: Id, value: Node<'a>, seen: Option<&mut Seen>) -> Known {
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
            if let Some(own) = own.as_mut().filter(|_| words.gap) {
                own.doubt();
            }
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
            seen.merge(own, Three::Yes);
        }
        Ok(sum.0)
    }

    /// Marks for the same value, and what merging them takes.
    fn beside(&mut self, seen: &Seen) -> Result<Seen, Enough> {
        self.spend(1 + seen.len() / 128)?;
        Ok(Seen::beside(seen))
    }

    /// A rule about the same value. What a broken one has looked at does not count.
    fn in_place(&mut self, id: Id, value: Node<'a>, seen: Option<&mut Seen>) -> Known {
        let Some(seen) = seen else {
            return self.rule(id, value, None);
        };
        let mut own = self.beside(seen)?;
        let known = self.rule(id, value, Some(&mut own))?;
        seen.merge(&own, known);
        Ok(known)
    }

    /// The same, of which nobody is told.
    pub(super) fn tried(&mut self, id: Id, value: Node<'a>, seen: Option<&mut Seen>) -> Known {
        self.untold(|run| run.in_place(id, value, seen))
    }

    /// Tells nobody of what is found on the way.
    pub(super) fn untold(&mut self, look: impl FnOnce(&mut Self) -> Known) -> Known {
        let told = self.told.take();
        let known = look(self);
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
            self.one_of(known, any, value, sum)?;
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
            if fitting > 1 {
                self.expect(known, sum, |_| {
                    "must fit one of several alternatives, and fits more than one".to_owned()
                });
            } else {
                self.one_of(known, one, value, sum)?;
            }
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
                    // Either of the two may look at anything.
                    if let Some(own) = own {
                        own.doubt();
                    }
                    None
                }
            };
            if let Some(chosen) = chosen {
                sum.add(self.in_place(chosen, value, own.as_mut())?);
            }
        }
        Ok(())
    }

    pub(super) fn bounds(
        &mut self,
        count: u64,
        min: Option<u64>,
        max: Option<u64>,
        of: &str,
    ) -> Three {
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

    /// Takes in whether a value fits one of these. If it does not, and by its kind can only be meant for one of them, what is wrong
    /// by that one is told: that it may also be null helps nobody whose number is too large.
    fn one_of(
        &mut self,
        known: Three,
        alternatives: &'a [Id],
        value: Node<'a>,
        sum: &mut Sum,
    ) -> Result<(), Enough> {
        if known == Three::No && self.is_heard() {
            let schema = self.schema;
            let mut meant = alternatives
                .iter()
                .filter(|id| is_meant(schema, **id, value));
            if let (Some(only), None) = (meant.next(), meant.next()) {
                sum.add(self.in_place(*only, value, None)?);
                return Ok(());
            }
        }
        self.expect(known, sum, |schema| told::any(schema, alternatives));
        Ok(())
    }

    pub(super) fn expect(
        &mut self,
        known: Three,
        sum: &mut Sum,
        wanted: impl FnOnce(&Schema) -> String,
    ) {
        if known == Three::No {
            let schema = self.schema;
            self.tell(|| wanted(schema));
        }
        sum.add(known);
    }

    pub(super) fn tell(&mut self, wanted: impl FnOnce() -> String) {
        if !self.is_heard() {
            return;
        }
        self.tells += 1;
        let problem = Problem {
            path: told::path(&self.path, self.names),
            wanted: wanted(),
        };
        // Members that are not named read alike.
        if let Some(told) = &mut self.told
            && told.last() != Some(&problem)
        {
            told.push(problem);
        }
    }
}

/// What walking along a value costs beside its members or elements: where they end is found byte by byte, and what stands
/// between them may be long.
pub(super) fn walk(value: Node<'_>) -> usize {
    value.raw_bytes().len() / 256
}

/// What looking for one member costs.
pub(super) fn seek(value: Node<'_>) -> usize {
    1 + value.raw_bytes().len() / 512
}

/// Whether a value of this kind may be meant for a rule, by the types that it and what it refers to allow.
fn is_meant(schema: &Schema, id: Id, value: Node<'_>) -> bool {
    let allows = |words: &Words| {
        let types = words.types;
        types.is_none_or(|types| types.has(value) == Some(true))
    };
    let referred = |id: &Id| match &schema.rules[*id] {
        Rule::All(words) => allows(words),
        Rule::Always | Rule::Unknown => true,
        Rule::Never => false,
    };
    match &schema.rules[id] {
        Rule::All(words) => allows(words) && words.all.iter().all(referred),
        Rule::Always | Rule::Unknown => true,
        Rule::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{
        super::{
            STEPS,
            tests::{schema, told},
        },
        *,
    };
    use crate::json::{Json, Limits};

    #[test]
    fn what_reads_alike_is_not_put_into_words_without_end() {
        let known: Vec<_> = (0..100)
            .map(|n| format!(r#""known{n}":{{"type":"string"}}"#))
            .collect();
        let of = schema(&format!(
            r#"{{"properties":{{{}}},"additionalProperties":false}}"#,
            known.join(",")
        ));
        let unknown: Vec<_> = (0..100_000).map(|n| format!(r#""{n}":1"#)).collect();
        let text = format!("{{{}}}", unknown.join(","));
        let value = Json::parse(Bytes::from(text), &Limits::KNOWN).unwrap();
        let mut run = Run::new(&of, STEPS);
        run.told = Some(Vec::new());
        assert!(matches!(run.rule(0, value.root(), None), Ok(Three::No)));
        assert_eq!(run.told.as_ref().map(|told| told.len()), Some(1));
        assert_eq!(run.tells, ALIKE);
        assert!(run.steps > STEPS - 10_000, "{}", run.steps);
    }

    /// As pydantic writes what is optional: a model cannot mend what is told as the kind that it sent.
    #[test]
    fn of_what_may_also_be_null_the_fault_is_told() {
        const OPTIONAL: &str = r##"{"properties":{
            "x":{"anyOf":[{"type":"integer","minimum":0,"maximum":10},{"type":"null"}]},
            "tags":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]},
            "p":{"oneOf":[{"$ref":"#/$defs/place"},{"type":"null"}]},
            "either":{"anyOf":[{"$ref":"#/$defs/place"},{"type":"object","required":["zip"]}]}},
            "$defs":{"place":{"type":"object","properties":{"street":{"type":"string"}},"required":["street"]}}}"##;
        for (value, want) in [
            (r#"{"x":30}"#, "/x must be at most 10"),
            (r#"{"x":-1}"#, "/x must be at least 0"),
            (r#"{"x":"30"}"#, "/x must be an integer or null"),
            (r#"{"tags":["a",1]}"#, "/tags/1 must be a string"),
            (r#"{"p":{"street":5}}"#, "/p/street must be a string"),
            (r#"{"p":[]}"#, "/p must be an object with `street` or null"),
            (
                r#"{"either":{}}"#,
                "/either must be an object with `street` or an object with `zip`",
            ),
        ] {
            assert_eq!(told(OPTIONAL, value), [want], "{value}");
        }
    }
}
