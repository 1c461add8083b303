//! Which detectors are measured, with what, and what must hold: the floors of the content rules.
// SECURITY 7, the published quality floor

use std::sync::Arc;

use usher::sanitize::{
    Class,
    active::Active,
    hidden::Hidden,
    injection as phrases, personal,
    secrets::{self, Wanted},
    terminal::Terminal,
};

use super::{
    active, hidden, injection,
    measure::{Floor, Subject},
    personal as numbers, secrets as keys, terminal,
};

/// Every class that has a corpus.
pub(crate) fn subjects() -> Vec<Subject> {
    let exact = Floor {
        recall: 1.0,
        precision: 1.0,
        flagged: 0.0,
        per_mebibyte: 0.0,
    };
    vec![
        Subject {
            class: Class::Hidden,
            detector: Arc::new(Hidden::new()),
            positives: hidden::positives(),
            negatives: hidden::negatives(),
            floor: exact,
        },
        Subject {
            class: Class::Terminal,
            detector: Arc::new(Terminal::new()),
            positives: terminal::positives(),
            negatives: terminal::negatives(),
            floor: exact,
        },
        Subject {
            class: Class::Secret,
            detector: Arc::new(secrets::detector(Wanted {
                strong: true,
                weak: false,
            })),
            positives: keys::positives(),
            negatives: keys::negatives(),
            floor: Floor {
                recall: 0.99,
                precision: 0.99,
                flagged: 0.02,
                per_mebibyte: 0.3,
            },
        },
        Subject {
            class: Class::PersonalChecked,
            detector: Arc::new(personal::detector()),
            positives: numbers::positives(),
            negatives: numbers::negatives(),
            floor: Floor {
                recall: 0.95,
                precision: 0.99,
                flagged: 0.01,
                per_mebibyte: f64::INFINITY,
            },
        },
        // Pages and documents have images; how many are made inert is told, and has no floor.
        Subject {
            class: Class::Active,
            detector: Arc::new(Active::new([])),
            positives: active::positives(),
            negatives: active::negatives(),
            floor: Floor {
                recall: 1.0,
                precision: 0.99,
                flagged: 0.0,
                per_mebibyte: f64::INFINITY,
            },
        },
        // Advisory: recall is told, at no more than one benign text in a hundred.
        Subject {
            class: Class::Injection,
            detector: phrases::detector(),
            positives: injection::positives(),
            negatives: injection::negatives(),
            floor: Floor {
                recall: 0.0,
                precision: 0.0,
                flagged: 0.01,
                per_mebibyte: f64::INFINITY,
            },
        },
    ]
}
