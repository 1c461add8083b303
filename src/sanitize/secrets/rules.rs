//! The rules, read once from the text that is compiled in, and the table that says where one may begin.
//!
//! Guarantees: asking whether a rule may begin at a place costs one look at a kilobyte. Deliberately absent: what rules that
//! need code look like (`urls.rs`, `armoured.rs`).

use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{checksums::Proof, pattern::Pattern, run};

const TOKENS: &str = include_str!("tokens.txt");
const CONTEXTS: &str = include_str!("contexts.txt");
const VENDORS: &str = include_str!("vendors.txt");
/// Slots of the table of beginnings.
const SLOTS: usize = 1 << 13;
/// Bits of the table that says whether anything begins so.
const MAY: usize = 1 << 16;

/// A token that is known by its form.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) name: Arc<str>,
    pub(super) pattern: Pattern,
    /// Public or weak by design.
    pub(super) low: bool,
    /// Of two keys of one form, of which the other is public.
    pub(super) twin: bool,
    /// Ends in a checksum.
    pub(super) checked: bool,
    /// What follows the beginning is not judged.
    pub(super) raw: bool,
    /// Others have its form: without a word of the context of its name near it, of low confidence.
    pub(super) near: bool,
    /// What it must hold true of itself.
    pub(super) proof: Option<Proof>,
}

/// A value that is known by its context.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) name: Arc<str>,
    pub(super) patterns: Vec<Pattern>,
    /// The name must also say that it is a key or the like.
    pub(super) word: bool,
    /// The name may be that of an id, which else is no secret.
    pub(super) id: bool,
}

/// A token without literal bytes in front: which byte stands how far behind its beginning, and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unprefixed {
    pub(super) first: u8,
    pub(super) near: usize,
    pub(super) far: usize,
    pub(super) token: u16,
}

/// What a word in a name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// That a key or the like follows.
    Secret,
    /// That a digest, a public key or the like follows.
    Harmless,
    /// That the number of a thing follows, right behind it: in a line of a log such numbers stand before anything.
    Id,
    /// Whose it is: contexts by number, and the name of the rule for whatever else looks like a key of theirs.
    Vendor(Vec<u16>, Arc<str>),
}

/// Everything that detectors of secrets know.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) tokens: Vec<Token>,
    pub(super) contexts: Vec<Context>,
    /// Tokens without literal bytes in front, by the byte that they begin with.
    unprefixed_with: Box<[Vec<Unprefixed>; 128]>,
    /// What is first known of those, one bit for each byte; all, where that may be a hexadecimal digit.
    unprefixed_behind: Box<[u128; 128]>,
    pub(super) words: AhoCorasick,
    pub(super) meanings: Vec<Word>,
    may: Box<[u64; MAY / 64]>,
    slots: Box<[(u16, u16)]>,
    order: Box<[u16]>,
}

/// Says that what follows is to be kept to oneself.
const SECRET: &[&str] = &[
    "token",
    "secret",
    "passw",
    "password",
    "passphrase",
    "passwd",
    "pwd",
    "pw",
    "psk",
    "credential",
    "creds",
    "apikey",
    "api_key",
    "api-key",
    "api key",
    "accesskey",
    "key",
    "auth",
    "bearer",
    "private",
    "license",
    "client_id",
    "client-id",
    "clientid",
    "clientsecret",
    "pat",
    "dsn",
    "sid",
    "api",
    "apitoken",
    "accesstoken",
    "authtoken",
    "secretkey",
    "privatekey",
    "keysecret",
    "access_id",
    "accessid",
    "app_id",
    "appid",
    "signing",
    "login",
    "skey",
    "authkey",
    "appkey",
    "writekey",
    "licensekey",
    "sharedkey",
    "masterkey",
    "apisecret",
    "appsecret",
    "certificate_key",
];

/// Says that what follows may be known to all, or is none.
const HARMLESS: &[&str] = &[
    "public",
    "pubkey",
    "publishable",
    "private_key_id",
    "sha1",
    "sha256",
    "sha512",
    "sha-",
    "sha_",
    "md5",
    "checksum",
    "digest",
    "integrity",
    "commit",
    "revision",
    "etag",
    "fingerprint",
    "uuid",
    "guid",
    "hash",
    "hashed",
    "csrf",
    "nonce",
    "cache",
    "primary",
    "foreign",
    "partition",
    "idempotency",
    "keyword",
    "keyboard",
    "sitekey",
    "site_key",
    "site-key",
    "tokenizer",
    "version",
    "sequence",
    "trace",
    "span",
    "request_id",
    "requestid",
    "correlation",
    "git_sha",
    "example",
    "sample",
    "nexttoken",
    "next_token",
    "next-token",
    "pagetoken",
    "page_token",
    "page-token",
    "continuationtoken",
    "continuation_token",
    "continuation-token",
    "cursor",
    "ciphertext",
    "arn:",
];

/// Says that the number of a thing follows.
const IDS: &[&str] = &[
    "request-id",
    "message_id",
    "message-id",
    "messageid",
    "object_id",
    "object-id",
    "objectid",
];

impl Rules {
    /// Reads the rules that are compiled in.
    pub(super) fn read() -> Self {
        let mut rules = Self {
            tokens: Vec::new(),
            contexts: Vec::new(),
            unprefixed_with: Box::new(std::array::from_fn(|_| Vec::new())),
            unprefixed_behind: Box::new([0; 128]),
            words: matcher(&[]),
            meanings: Vec::new(),
            may: Box::new([0; MAY / 64]),
            slots: vec![(0, 0); SLOTS].into(),
            order: Box::default(),
        };
        rules.read_tokens();
        rules.index();
        for (unprefixed, behind) in rules
            .unprefixed_with
            .iter_mut()
            .zip(rules.unprefixed_behind.iter_mut())
        {
            unprefixed.sort_by_key(|unprefixed| unprefixed.near);
            *behind = unprefixed.iter().fold(0, |all, unprefixed| {
                all | match unprefixed.first {
                    b'0'..=b'9' | b'a'..=b'f' => u128::MAX,
                    other => 1 << (other & 127),
                }
            });
        }
        rules.read_contexts();
        rules
    }

    /// Whether a token may begin with these.
    #[inline]
    pub(super) fn may_begin(&self, three: [u8; 3]) -> bool {
        let bit = mixed(three) >> (32 - MAY.trailing_zeros());
        self.may[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    /// Tokens that may begin with these, and perhaps some that do not.
    pub(super) fn beginning_with(&self, three: [u8; 3]) -> impl Iterator<Item = &Token> {
        let (from, to) = self.slots[slot(three)];
        self.order[usize::from(from)..usize::from(to)]
            .iter()
            .map(|at| &self.tokens[usize::from(*at)])
    }

    /// Whether it begins as tokens of a known form do, and was cut off, or is not of their alphabets: nobody can use it.
    pub(super) fn is_spoiled(&self, value: &[u8]) -> bool {
        let Some(three) = value.first_chunk().filter(|three| self.may_begin(**three)) else {
            return false;
        };
        let tokens = self.beginning_with(*three);
        let mut spoils = tokens.filter_map(|token| token.pattern.spoils(value));
        // One that it fits, or that goes on without an end, is enough.
        spoils
            .next()
            .is_some_and(|first| first && spoils.all(|next| next))
    }

    /// Tokens without literal bytes in front that may begin here, and perhaps some that do not.
    /// What goes no farther than `reach` has nothing at a greater distance; nobody asks about more than [`Rules::UNPREFIXED`].
    pub(super) fn unprefixed_at<'t>(
        &self,
        text: &'t [u8],
        reach: usize,
    ) -> impl Iterator<Item = &Unprefixed> + use<'_, 't> {
        let first = text.first().copied().unwrap_or(0xFF);
        let may = self.unprefixed_with.get(usize::from(first));
        may.map_or(&[][..], Vec::as_slice)
            .iter()
            .take_while(move |unprefixed| unprefixed.near <= reach)
            .filter(move |unprefixed| {
                let is = |at: usize| text.get(at).is_some_and(|byte| *byte == unprefixed.first);
                if is(unprefixed.near) {
                    return true;
                }
                if reach >= Self::UNPREFIXED {
                    return (unprefixed.near + 1..=unprefixed.far).any(is);
                }
                // What stands before it goes on no farther, and is none of it where it is of no alphabet of Base64.
                if is_encoded(unprefixed.first) {
                    (unprefixed.near + 1..=unprefixed.far.min(reach)).any(is)
                } else {
                    reach <= unprefixed.far && is(reach)
                }
            })
    }

    /// Whether any of them may begin with a run of hexadecimal digits with small letters: what is first known of most is no such
    /// digit, and so stands right behind the run or nowhere.
    #[inline]
    pub(super) fn may_be_unprefixed(&self, text: &[u8], start: usize, end: usize) -> bool {
        let behind = self.unprefixed_behind.get(usize::from(text[start]));
        behind.is_some_and(|behind| {
            let stands = |after: &u8| after.is_ascii() && behind >> after & 1 == 1;
            *behind == u128::MAX || text.get(end).is_some_and(stands)
        })
    }

    /// The farthest that what is first known of such a token may stand behind its beginning.
    pub(super) const UNPREFIXED: usize = run::ENCODED;

    fn read_tokens(&mut self) {
        for [name, pattern, rest] in lines(TOKENS) {
            let has = |flag: &str| rest.split_whitespace().skip(1).any(|word| word == flag);
            let name: Arc<str> = name.into();
            for pattern in read(pattern) {
                if pattern.prefix() == 0
                    && let Some((literal, near, far)) = pattern.lead()
                {
                    debug_assert!(near <= Self::UNPREFIXED, "{name}");
                    let unprefixed = Unprefixed {
                        first: literal[0],
                        near,
                        far,
                        token: self.tokens.len() as u16,
                    };
                    pattern
                        .first()
                        .for_each(|byte| self.unprefixed_with[usize::from(byte)].push(unprefixed));
                }
                self.tokens.push(Token {
                    name: name.clone(),
                    pattern,
                    low: has("low"),
                    twin: has("twin"),
                    checked: has("crc"),
                    raw: has("raw"),
                    near: has("near"),
                    proof: rest.split_whitespace().find_map(Proof::named),
                });
            }
        }
    }

    fn index(&mut self) {
        let mut pairs: Vec<(u16, u16)> = Vec::new();
        let mut all = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            if token.pattern.prefix() > 0 {
                let beginnings = token.pattern.beginnings();
                pairs.extend(
                    beginnings
                        .iter()
                        .map(|three| (slot(*three) as u16, at as u16)),
                );
                all.extend(beginnings);
            }
        }
        for three in all {
            let bit = mixed(three) >> (32 - MAY.trailing_zeros());
            self.may[bit as usize / 64] |= 1 << (bit % 64);
        }
        pairs.sort_unstable();
        pairs.dedup();
        for (at, (slot, _)) in pairs.iter().enumerate() {
            let slot = usize::from(*slot);
            let range = &mut self.slots[slot];
            if range.0 == range.1 {
                range.0 = at as u16;
            }
            range.1 = at as u16 + 1;
        }
        self.order = pairs.into_iter().map(|(_, token)| token).collect();
    }

    fn read_contexts(&mut self) {
        let mut names: Vec<(String, Word)> = Vec::new();
        let vendor = |names: &mut Vec<(String, Word)>, word: &str, context: Option<u16>| {
            let known = names.iter_mut().find_map(|(name, meaning)| match meaning {
                Word::Vendor(contexts, _) if name == word => Some(contexts),
                Word::Vendor(..) | Word::Secret | Word::Harmless | Word::Id => None,
            });
            match known {
                Some(contexts) => contexts.extend(context),
                None => names.push((
                    word.to_owned(),
                    Word::Vendor(
                        context.into_iter().collect(),
                        format!("{}_credential", word.replace(['-', '.'], "_")).into(),
                    ),
                )),
            }
        };
        for [name, words, rest] in lines(CONTEXTS) {
            let (pattern, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let at = self.contexts.len() as u16;
            self.contexts.push(Context {
                name: name.into(),
                patterns: read(pattern),
                word: rest.split_whitespace().any(|flag| flag == "word"),
                id: rest.split_whitespace().any(|flag| flag == "id"),
            });
            words
                .split(',')
                .flat_map(joined)
                .for_each(|word| vendor(&mut names, &word, Some(at)));
        }
        VENDORS
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(str::split_whitespace)
            .for_each(|word| vendor(&mut names, word, None));
        names.extend(SECRET.iter().map(|word| ((*word).to_owned(), Word::Secret)));
        names.extend(
            HARMLESS
                .iter()
                .map(|word| ((*word).to_owned(), Word::Harmless)),
        );
        names.extend(IDS.iter().map(|word| ((*word).to_owned(), Word::Id)));
        let (words, meanings): (Vec<_>, Vec<_>) = names.into_iter().unzip();
        self.words = matcher(&words);
        self.meanings = meanings;
    }
}

/// A word of more than one as names in source have it: `dd_api`, `dd-api`, `ddApi`.
fn joined(word: &str) -> Vec<String> {
    let mut all = vec![word.to_owned()];
    if word.contains("_api") || word.contains("_app") {
        all.extend(["-", " ", ""].map(|joint| word.replace('_', joint)));
    }
    all
}

/// Whether it is of either alphabet of Base64.
const fn is_encoded(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

#[inline]
const fn mixed([first, second, third]: [u8; 3]) -> u32 {
    u32::from_le_bytes([first, second, third, 0]).wrapping_mul(0x9E37_79B1)
}

#[inline]
const fn slot(three: [u8; 3]) -> usize {
    (mixed(three) >> (32 - SLOTS.trailing_zeros())) as usize
}

fn lines(text: &str) -> impl Iterator<Item = [&str; 3]> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, rest) = line.split_once(char::is_whitespace)?;
            let (form, rest) = rest.trim_start().split_once(char::is_whitespace)?;
            Some([name, form, rest.trim_start()])
        })
}

// INVARIANT: the text is compiled in, and a test reads all of it.
#[expect(clippy::expect_used, reason = "the rules are compiled in")]
fn read(pattern: &str) -> Vec<Pattern> {
    Pattern::parse(pattern).expect("a test reads every rule")
}

// INVARIANT: the words are compiled in, and a test builds the automaton.
#[expect(clippy::expect_used, reason = "the words are compiled in")]
fn matcher(words: &[String]) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .expect("a test builds it")
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::{super::run::Run, *};

    #[test]
    fn no_token_begins_in_a_uuid() {
        let rules = Rules::read();
        let may = rules.tokens.iter();
        let may: Vec<_> = may
            .filter(|token| token.pattern.may_begin_in_uuid())
            .map(|token| &token.name)
            .collect();
        assert!(may.is_empty(), "{may:?}");
        let uuid = Pattern::parse(r"\i").expect("a pattern of a test");
        assert!(uuid[0].may_begin_in_uuid());
    }

    proptest! {
        #[test]
        fn what_may_not_be_unprefixed_is_not(run in "[0-9a-f]{14,63}", after in "[ -~é]{0,9}") {
            static RULES: LazyLock<Rules> = LazyLock::new(Rules::read);
            let text = format!("{run}{after}");
            let text = text.as_bytes();
            let length = Run::at(text, 0).length;
            if Run::at(text, 0).is_hexadecimal() && !RULES.may_be_unprefixed(text, 0, length) {
                prop_assert_eq!(RULES.unprefixed_at(text, length).next().map(|unprefixed| unprefixed.near), None);
            }
        }
    }

    #[test]
    fn all_that_stands_before_the_first_literal_of_an_unprefixed_token_is_of_the_alphabets_of_base64()
     {
        let rules = Rules::read();
        let unprefixed: Vec<_> = rules.unprefixed_with.iter().flatten().collect();
        assert!(unprefixed.len() > 100);
        for unprefixed in unprefixed {
            let pattern = &rules.tokens[usize::from(unprefixed.token)].pattern;
            for byte in pattern.before_lead() {
                assert!(byte.is_ascii_alphanumeric() || b"+/_-".contains(&byte));
            }
        }
    }
}
