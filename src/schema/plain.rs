//! Rules about values with nothing inside: numbers and texts.

use super::{
    notes::{Sum, Three},
    rule::{Numbers, Texts},
    run::{Enough, Known, Run},
    told,
};
use crate::json::{Decimal, Node};

impl Run<'_> {
    pub(super) fn number(&mut self, numbers: &Numbers, value: Node<'_>) -> Known {
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

    pub(super) fn text(&mut self, texts: &Texts, value: Node<'_>) -> Known {
        let text = value.as_str().unwrap_or_default();
        self.spend(text.len() / 256)?;
        let mut sum = Sum(if texts.gap {
            Three::Unknown
        } else {
            Three::Yes
        });
        if texts.min.is_some() || texts.max.is_some() {
            let length = text.chars().count() as u64;
            sum.add(self.bounds(length, texts.min, texts.max, "characters"));
        }
        if let Some(pattern) = &texts.pattern {
            self.spend(pattern.steps(&text))?;
            if !pattern.is_match(&text) {
                self.tell(|| told::pattern(&pattern.spelled));
                sum.add(Three::No);
            }
        }
        Ok(sum.0)
    }
}

impl Decimal {
    /// Whether a bound, if there is one, holds.
    fn cmp_to(&self, bound: &Option<Self>, holds: impl FnOnce(std::cmp::Ordering) -> bool) -> bool {
        bound.as_ref().is_none_or(|bound| holds(self.cmp(bound)))
    }
}
