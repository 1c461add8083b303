//! Classes: what policies can know of somebody, and no more.
//!
//! Of an identity a class keeps what some policy names or looks at: the groups and the tenant that appear in policies, the
//! id if one appears, and attributes if one reads them. So ten thousand principals with twenty distinct grants are
//! twenty classes, and whatever is decided without the context holds for all of a class.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher, RandomState},
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use moka::sync::Cache;

use super::{
    load::Compiled,
    mention::Attributes,
    rule::{Constraint, Literal},
    schema::type_of,
};
use crate::call::{Identity, IdentityKind};

/// Classes that are kept; the least used are forgotten, and made anew when they come again.
pub(super) const CLASSES: u64 = 4_096;
/// Identities whose class is remembered; of those that are gone nothing but their address.
const IDENTITIES: u64 = 16_384;

/// What policy knows of somebody: identities that no policy can tell apart are of one class, and see the same lists. Cheap to
/// clone, to compare and to hash; classes of different sets of policies must not be compared.
#[derive(Debug, Clone)]
pub struct Class(pub(super) Arc<ClassTraits>);

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.digest == other.0.digest && self.0.traits() == other.0.traits())
    }
}

impl Eq for Class {}

impl Hash for Class {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.digest);
    }
}

impl Class {
    /// The class of everybody, where there are no policies.
    pub(super) fn only() -> Self {
        static ONLY: LazyLock<Class> = LazyLock::new(|| {
            Class::new(Traits {
                kind: IdentityKind::Anonymous,
                uid: None,
                ancestors: &[],
                name: None,
                issuer: None,
                tenant: None,
                owner: None,
            })
        });
        ONLY.clone()
    }

    fn new(traits: Traits<'_>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(Arc::new(ClassTraits {
            kind: traits.kind,
            uid: traits.uid,
            ancestors: traits.ancestors.into(),
            name: traits.name.cloned(),
            issuer: traits.issuer.cloned(),
            tenant: traits.tenant.cloned(),
            owner: traits.owner.cloned(),
            digest: traits.digest(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }))
    }
}

/// The traits that all of one class share.
#[derive(Debug)]
pub(super) struct ClassTraits {
    pub(super) kind: IdentityKind,
    /// The literal that names them, if any does.
    uid: Option<u32>,
    /// Literals of groups and tenants they are in, in order.
    ancestors: Box<[u32]>,
    /// Attributes, where a policy reads them.
    pub(super) name: Option<Arc<str>>,
    pub(super) issuer: Option<Arc<str>>,
    pub(super) tenant: Option<Arc<str>>,
    pub(super) owner: Option<Arc<str>>,
    /// Of all the above: equal for equal classes, and as good as never for others.
    digest: u64,
    /// No other has it. A class that was forgotten and made anew has another.
    pub(super) number: u64,
}

/// What makes a class, before it is known whether there is one already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Traits<'a> {
    kind: IdentityKind,
    uid: Option<u32>,
    ancestors: &'a [u32],
    name: Option<&'a Arc<str>>,
    issuer: Option<&'a Arc<str>>,
    tenant: Option<&'a Arc<str>>,
    owner: Option<&'a Arc<str>>,
}

impl Traits<'_> {
    fn digest(&self) -> u64 {
        // Names are chosen outside: nobody is to find two that get in each other's way.
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        let mut hasher = Fnv(*SEED);
        hasher.write_u64(self.kind as u64);
        hasher.write_u64(self.uid.map_or(u64::MAX, u64::from));
        for ancestor in self.ancestors {
            hasher.write_u64(u64::from(*ancestor));
        }
        for text in [self.name, self.issuer, self.tenant, self.owner] {
            hasher.write_u64(text.map_or(u64::MAX, |text| text.len() as u64));
            if let Some(text) = text {
                hasher.write(text.as_bytes());
            }
        }
        hasher.finish()
    }
}

impl ClassTraits {
    fn traits(&self) -> Traits<'_> {
        Traits {
            kind: self.kind,
            uid: self.uid,
            ancestors: &self.ancestors,
            name: self.name.as_ref(),
            issuer: self.issuer.as_ref(),
            tenant: self.tenant.as_ref(),
            owner: self.owner.as_ref(),
        }
    }
}

/// What identities are sorted by.
#[derive(Debug)]
pub(super) struct Classes {
    literals: Vec<Literal>,
    /// Literals by id, for each kind of identity.
    people: [Table<Person>; 4],
    /// For a group, the literals it leads to.
    groups: Table<Box<[u32]>>,
    tenants: Table<u32>,
    reads: Attributes,
    /// The id of those whom no policy names.
    nobody: Arc<str>,
    /// The classes that somebody was of, by digest.
    known: Cache<u64, Class, Mixing>,
    /// Those of identities that came lately, by where they are: nothing else can be there while somebody still points to it.
    lately: Cache<usize, Arc<(Weak<Identity>, Class)>, Mixing>,
}

/// Something for each of the names that policies give. Nobody but their authors puts names in, so that the cheapest hash will
/// do: whoever asks can at most look up what is not there.
type Table<V> = HashMap<Arc<str>, V, BuildHasherDefault<Fnv>>;

/// For keys that are numbers, and that nobody outside chooses.
pub(super) type Mixing = BuildHasherDefault<Fnv>;

/// FNV-1a, eight bytes at a time.
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = rest.len() as u64;
            for byte in rest {
                word = word << 8 | u64::from(*byte);
            }
            self.write_u64(word);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 29;
    }

    /// Where a text ends, which is of no use here: nothing is hashed after it.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

#[derive(Debug, Default)]
struct Person {
    uid: Option<u32>,
    ancestors: Box<[u32]>,
}

const KINDS: [IdentityKind; 4] = [
    IdentityKind::Anonymous,
    IdentityKind::User,
    IdentityKind::Agent,
    IdentityKind::Key,
];

impl Classes {
    pub(super) fn of(compiled: &Compiled) -> Self {
        let literals: Vec<Literal> = compiled.literals.iter().cloned().collect();
        let index: HashMap<&Literal, u32> = literals.iter().zip(0..).collect();
        let number = |ty: &str, id: &Arc<str>| index.get(&(ty.into(), id.clone())).copied();
        let in_groups = |groups: &mut dyn Iterator<Item = &Arc<str>>| -> Box<[u32]> {
            groups.filter_map(|group| number("Group", group)).collect()
        };
        let mut people: [Table<Person>; 4] = Default::default();
        for kind in KINDS {
            let people = &mut people[kind as usize];
            for (ty, id) in &literals {
                if **ty == *type_of(kind) {
                    people.entry(id.clone()).or_default().uid = number(ty, id);
                }
            }
            for (name, groups) in compiled.groups.members(kind) {
                people.entry(name.clone()).or_default().ancestors = in_groups(&mut groups.iter());
            }
        }
        let mut groups = Table::default();
        let named = literals.iter().filter(|(ty, _)| **ty == *"Group");
        for group in compiled.groups.names().chain(named.map(|(_, id)| id)) {
            let above = compiled.groups.above(group);
            groups.insert(group.clone(), in_groups(&mut above.iter()));
        }
        let tenants = literals.iter().filter(|(ty, _)| **ty == *"Tenant");
        let tenants = tenants
            .filter_map(|(ty, id)| Some((id.clone(), number(ty, id)?)))
            .collect();
        let mut reads = Attributes::default();
        for rule in &compiled.rules {
            reads.name |= rule.mentions.principal.name;
            reads.issuer |= rule.mentions.principal.issuer;
            reads.tenant |= rule.mentions.principal.tenant;
            reads.owner |= rule.mentions.principal.owner;
        }
        let mut nobody = String::from("somebody");
        while literals.iter().any(|(_, id)| **id == *nobody) {
            nobody.push('_');
        }
        Self {
            literals,
            people,
            groups,
            tenants,
            reads,
            nobody: nobody.into(),
            known: Cache::builder()
                .max_capacity(CLASSES)
                .build_with_hasher(Mixing::default()),
            lately: Cache::builder()
                .max_capacity(IDENTITIES)
                .build_with_hasher(Mixing::default()),
        }
    }

    /// A name that no policy names.
    pub(super) fn nobody(&self) -> &str {
        &self.nobody
    }

    /// The number of an entity that a policy names.
    pub(super) fn number(&self, ty: &str, id: &str) -> Option<u32> {
        let place = self
            .literals
            .binary_search_by(|(other, name)| (&**other, &**name).cmp(&(ty, id)));
        place.ok().and_then(|place| u32::try_from(place).ok())
    }

    /// The class of somebody who calls again and again.
    pub(super) fn class_of(&self, who: &Arc<Identity>) -> Class {
        let at = Arc::as_ptr(who).addr();
        if let Some(known) = self.lately.get(&at) {
            return known.1.clone();
        }
        let class = self.class(who);
        let known = Arc::new((Arc::downgrade(who), class.clone()));
        self.lately.insert(at, known);
        class
    }

    /// The class of somebody.
    pub(super) fn class(&self, who: &Identity) -> Class {
        let person = self.people[who.kind as usize].get(&who.name);
        let mut ancestors = Vec::with_capacity(who.groups.len() + 8);
        if let Some(person) = person {
            ancestors.extend_from_slice(&person.ancestors);
        }
        for group in &who.groups {
            match self.groups.get(group).map(|above| &**above) {
                // Itself alone, as nearly always.
                Some([only]) => ancestors.push(*only),
                Some(above) => ancestors.extend_from_slice(above),
                None => {}
            }
        }
        if let Some(tenant) = who.tenant.as_ref().and_then(|name| self.tenants.get(name)) {
            ancestors.push(*tenant);
        }
        // Both are in the order of names, so that there is mostly nothing to do.
        if !ancestors.is_sorted_by(|one, two| one < two) {
            ancestors.sort_unstable();
            ancestors.dedup();
        }
        let traits = Traits {
            kind: who.kind,
            uid: person.and_then(|person| person.uid),
            ancestors: &ancestors,
            name: self.reads.name.then_some(&who.name),
            issuer: who.issuer.as_ref().filter(|_| self.reads.issuer),
            tenant: who.tenant.as_ref().filter(|_| self.reads.tenant),
            owner: who.owner.as_ref().filter(|_| self.reads.owner),
        };
        let digest = traits.digest();
        if let Some(class) = self.known.get(&digest)
            && class.0.traits() == traits
        {
            return class;
        }
        let class = Class::new(traits);
        self.known.insert(digest, class.clone());
        class
    }

    /// The id that stands for a class.
    pub(super) fn id<'a>(&'a self, traits: &'a ClassTraits) -> &'a str {
        match traits.uid.and_then(|uid| self.literals.get(uid as usize)) {
            Some((_, id)) => id,
            None => &self.nobody,
        }
    }

    /// The groups and tenants that a class is in, as far as policies name them.
    pub(super) fn ancestors<'a>(
        &'a self,
        traits: &'a ClassTraits,
    ) -> impl Iterator<Item = &'a Literal> {
        traits
            .ancestors
            .iter()
            .filter_map(|number| self.literals.get(*number as usize))
    }

    /// Whether a class is, or is in, what a literal names.
    pub(super) fn is_in(&self, traits: &ClassTraits, (ty, id): (&str, &str)) -> bool {
        self.number(ty, id).is_some_and(|number| {
            traits.uid == Some(number) || traits.ancestors.binary_search(&number).is_ok()
        })
    }

    /// Whether a class is what a literal names.
    pub(super) fn is(&self, traits: &ClassTraits, (ty, id): (&str, &str)) -> bool {
        traits.uid.is_some() && self.number(ty, id) == traits.uid
    }

    /// Whether the scope of a policy means a class.
    pub(super) fn is_meant(&self, traits: &ClassTraits, scope: &Constraint) -> bool {
        let is = |ty: &str| ty == type_of(traits.kind);
        match scope {
            Constraint::Any => true,
            Constraint::Is(ty) => is(ty),
            Constraint::Eq((ty, id)) => self.is(traits, (ty, id)),
            Constraint::In((ty, id)) => self.is_in(traits, (ty, id)),
            Constraint::IsIn(kind, (ty, id)) => is(kind) && self.is_in(traits, (ty, id)),
        }
    }
}
