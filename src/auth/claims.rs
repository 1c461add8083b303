//! Claims to an identity: which say what is configured, and each is of its type or the token is refused.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::{AuthError, spec::ClaimNames, time};
use crate::{
    call::{Assertion, End, Identity, IdentityKind, Principal},
    json::{Kind, Node},
};

/// The most groups, scopes or audiences of one token.
const MOST: usize = 1_024;

/// What a token says of itself beyond who it is for.
pub(super) struct Facts<'a> {
    pub(super) token: &'a str,
    pub(super) issuer: &'a Arc<str>,
    /// Unix seconds.
    pub(super) expires: Option<u64>,
    /// Seconds that clocks may differ.
    pub(super) skew: u64,
    pub(super) revoked: CancellationToken,
}

/// Who a token is about.
///
/// # Errors
/// When a claim is of a wrong type, or the user is missing (SECURITY AUTHN-3).
pub(super) fn identity(
    claims: Node<'_>,
    names: &ClaimNames,
    facts: Facts<'_>,
) -> Result<Identity, AuthError> {
    let client = either(claims, names.client.as_deref(), ["client_id", "azp"]);
    let client = client.map(|node| name(node, "client")).transpose()?;
    let user = find(claims, &names.user).ok_or(AuthError::Invalid("no user"))?;
    let user = name(user, "user")?;
    let tenant = names.tenant.as_deref().and_then(|path| find(claims, path));
    let tenant = tenant.map(|node| name(node, "tenant")).transpose()?;
    let groups = find(claims, &names.groups);
    let groups = groups.map_or_else(|| Ok(BTreeSet::new()), |node| texts(node, Form::Whole))?;
    let scopes = either(claims, names.scopes.as_deref(), ["scope", "scp"]);
    let scopes = scopes.map_or_else(|| Ok(BTreeSet::new()), |node| texts(node, Form::Blanks))?;
    // A client that got a token for itself is its own subject (RFC 9068, 2.2).
    let subject = find(claims, "sub").and_then(Node::as_str);
    let kind = match (&client, subject) {
        (Some(client), Some(subject)) if **client == *subject => IdentityKind::Agent,
        _ => IdentityKind::User,
    };
    let name = match (&client, kind) {
        (Some(client), IdentityKind::Agent) => client.clone(),
        _ => user,
    };
    let word = if kind == IdentityKind::Agent {
        "agent"
    } else {
        "user"
    };
    // Whole seconds are compared, so the last one counts to its end.
    let tolerance = Duration::from_secs(facts.skew.saturating_add(1));
    // INVARIANT: an issuer is an address without blanks, so different ones never spell the same.
    let principal = Principal::new(format!("{word} {} {name}", facts.issuer));
    Ok(Identity {
        principal,
        kind,
        name,
        issuer: Some(facts.issuer.clone()),
        groups,
        tenant,
        scopes,
        client,
        owner: None,
        until: facts
            .expires
            .and_then(time)
            .map(|at| End::new(at, tolerance)),
        revoked: facts.revoked,
        key: None,
        assertion: Some(Assertion(SecretString::from(facts.token.to_owned()))),
    })
}

impl Identity {
    /// Whether two proofs say the same of somebody; when they end is another question.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.principal == other.principal
            && self.groups == other.groups
            && self.scopes == other.scopes
            && self.tenant == other.tenant
            && self.client == other.client
    }
}

/// The audiences of a token.
///
/// # Errors
/// When it is neither a text nor a list of texts.
pub(super) fn audiences(claims: Node<'_>) -> Result<Vec<Arc<str>>, AuthError> {
    let Some(node) = claims.member("aud") else {
        return Ok(Vec::new());
    };
    Ok(texts(node, Form::Whole)?.into_iter().collect())
}

/// A time in unix seconds; fractions are allowed and cut off (RFC 7519, 2).
///
/// # Errors
/// When it is there and no number that can be meant.
pub(super) fn seconds(claims: Node<'_>, name: &str) -> Result<Option<u64>, AuthError> {
    let Some(node) = claims.member(name) else {
        return Ok(None);
    };
    let number = (node.kind() == Kind::Number)
        .then(|| node.raw().parse::<f64>().ok())
        .flatten();
    let sound = number.filter(|number| (0.0..1e13).contains(number));
    // INVARIANT: within the range just checked, which a u64 holds.
    sound
        .map(|number| Some(number as u64))
        .ok_or(AuthError::Invalid("a time that is none"))
}

/// A claim by its name, or by the way to it.
fn find<'a>(claims: Node<'a>, path: &str) -> Option<Node<'a>> {
    let whole = claims.member(path);
    let node = whole.or_else(|| {
        path.split('.')
            .try_fold(claims, |node, step| node.member(step))
    });
    node.filter(|node| node.kind() != Kind::Null)
}

fn either<'a>(claims: Node<'a>, given: Option<&str>, usual: [&str; 2]) -> Option<Node<'a>> {
    match given {
        Some(path) => find(claims, path),
        None => usual.iter().find_map(|path| find(claims, path)),
    }
}

fn name(node: Node<'_>, what: &'static str) -> Result<Arc<str>, AuthError> {
    let text = node.as_str().filter(|text| !text.is_empty());
    // Control characters have no place in a name that is logged and compared.
    let sound = text.filter(|text| text.len() <= 1_024 && !text.chars().any(char::is_control));
    sound
        .map(|text| text.as_ref().into())
        .ok_or(AuthError::Invalid(what))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A text is one.
    Whole,
    /// A text is many, with blanks between.
    Blanks,
}

fn texts(node: Node<'_>, form: Form) -> Result<BTreeSet<Arc<str>>, AuthError> {
    let mut found = BTreeSet::new();
    match node.kind() {
        Kind::String => {
            let text = node.as_str().unwrap_or_default();
            match form {
                Form::Whole => drop(found.insert(Arc::from(text.as_ref()))),
                Form::Blanks => found.extend(text.split_ascii_whitespace().map(Arc::from)),
            }
        }
        Kind::Array => {
            for element in node.elements() {
                let text = element
                    .as_str()
                    .ok_or(AuthError::Invalid("a list of other things than texts"))?;
                found.insert(Arc::from(text.as_ref()));
            }
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::Object => {
            return Err(AuthError::Invalid("neither a text nor a list of texts"));
        }
    }
    if found.len() > MOST {
        return Err(AuthError::Invalid("too many of one claim"));
    }
    Ok(found)
}
