//! `usher keys`: API keys made, listed, revoked (PRODUCT 7). The key itself is shown once and kept nowhere.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args as ClapArgs, Subcommand};
use secrecy::ExposeSecret as _;

use super::{Ended, date, near, out, source::Source, table::aligned};
use crate::{
    auth::{
        keys::{KeyFile, KeyRecord, KeyWish, MOST, create},
        spec::KeysSpec,
    },
    config,
    json::Json,
    protocol::meta,
    seal::unix_seconds,
    server::guard::{last_used, replace},
};

/// Make, list and revoke API keys
#[derive(Debug, Subcommand)]
#[command(after_help = "\
The configuration says where keys are kept and what they are hashed with:

  auth:
    keys: { file: keys.json, secret: \"${file:/run/secrets/usher-keys}\" }   # openssl rand -hex 32

Examples:
  usher keys create ci --owner ana --group deployers
  usher keys list
  usher keys revoke ci

A running gateway takes over what changed within seconds.")]
pub(super) enum Args {
    /// Make a key; it is printed once and kept nowhere
    #[command(after_help = "\
Examples:
  usher keys create ci --owner ana
  usher keys create nightly --owner ops --group readers --scope mcp:read --expires 30d
  USHER_KEY=$(usher keys create laptop --owner ana --expires never)

Clients send it as `Authorization: Bearer KEY` or as `X-API-Key: KEY`.")]
    Create(Create),
    /// Show who has which key, when it ends and when it was used last
    #[command(after_help = "\
Examples:
  usher keys list
  usher keys list --all                 with those that are revoked or expired
  usher keys list | cut -f2,7           piped, the columns are separated by tabs
  usher keys list --json | jq -r '.[].name'")]
    List(List),
    /// Refuse a key from now on, and end what is open under it
    #[command(after_help = "\
Examples:
  usher keys revoke ci
  usher keys revoke 3f9a0c1b2d4e")]
    Revoke(Revoke),
}

/// See [`Args::Create`].
#[derive(Debug, ClapArgs)]
pub(super) struct Create {
    /// What to call it: the name under which policy knows it
    name: String,
    /// Who answers for it
    #[arg(long)]
    owner: String,
    /// A group it is in; may be given several times
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// A scope it has; may be given several times
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Its tenant
    #[arg(long)]
    tenant: Option<String>,
    /// When it ends: a time such as 30d or 12h, or `never`
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = lifetime)]
    expires: Lifetime,
    /// Print the key and its record as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: Source,
}

/// See [`Args::List`].
#[derive(Debug, ClapArgs)]
pub(super) struct List {
    /// Also those that are revoked or expired
    #[arg(long)]
    all: bool,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: Source,
}

/// See [`Args::Revoke`].
#[derive(Debug, ClapArgs)]
pub(super) struct Revoke {
    /// Its name or id
    key: String,
    /// Print its record as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: Source,
}

/// How long a key counts.
#[derive(Debug, Clone, Copy)]
enum Lifetime {
    Never,
    For(Duration),
}

/// The longest that a key may count that is to end.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 86_400);

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime::Never);
    }
    let time = config::time(text).filter(|time| time.as_secs() > 0);
    match time {
        Some(time) if time > LONGEST => Err("10 years at most; or `never`".to_owned()),
        Some(time) => Ok(Lifetime::For(time)),
        None => Err("a whole number and `m`, `h` or `d`, such as `30d`; or `never`".to_owned()),
    }
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    // What keys are hashed with is of no use for keys that are there.
    let (source, needed) = match args {
        Args::Create(create) => (&create.source, "auth.keys"),
        Args::List(list) => (&list.source, "auth.keys.file"),
        Args::Revoke(revoke) => (&revoke.source, "auth.keys.file"),
    };
    let spec = match source.part(&[needed], |plan| plan.auth?.keys) {
        Ok(spec) => spec,
        Err(ended) => return ended,
    };
    let Some(spec) = spec else {
        out::problem(&format!(
            "{} says nothing of API keys; add `auth: {{ keys: {{ file: keys.json, secret: \"${{file:/path}}\" }} }}`",
            source.path().display()
        ));
        return Ended::Misused;
    };
    let done = match args {
        Args::Create(args) => make(args, &spec),
        Args::List(args) => list(args, &spec),
        Args::Revoke(args) => revoke(args, &spec),
    };
    match done {
        Ok(()) => Ended::Well,
        Err(why) => {
            out::problem(&why);
            Ended::Failed
        }
    }
}

fn make(args: &Create, spec: &KeysSpec) -> Result<(), String> {
    for (what, text) in [("name", &args.name), ("--owner", &args.owner)] {
        if text.trim().is_empty() || text.len() > 128 || text.chars().any(char::is_control) {
            return Err(format!("{what}: 1 to 128 characters that can be printed"));
        }
    }
    let now = unix_seconds();
    let wish = KeyWish {
        name: args.name.clone(),
        owner: args.owner.clone(),
        groups: args.groups.clone(),
        scopes: args.scopes.clone(),
        tenant: args.tenant.clone(),
        expires: match args.expires {
            Lifetime::Never => None,
            Lifetime::For(time) => Some(now.saturating_add(time.as_secs())),
        },
    };
    let key = create(wish, &spec.secret, now);
    let record = key.record.clone();
    change(&spec.file, |file| {
        let taken = |one: &&KeyRecord| one.name == args.name && one.revoked.is_none();
        if let Some(one) = file.keys.iter().find(taken) {
            return Err(format!(
                "there is a key `{}` already ({}); revoke that one, or choose another name",
                one.name, one.id
            ));
        }
        if file.keys.len() >= MOST {
            return Err(format!(
                "{} has {MOST} keys, revoked ones among them, and holds no more: take the records of old ones out of it",
                spec.file.display()
            ));
        }
        file.keys.push(record.clone());
        Ok(())
    })?;
    let text = key.text.expose_secret();
    if args.json {
        let members = [
            ("key", Json::string(text)),
            ("record", shown(&record, None)),
        ];
        out::line(meta::object_of(&members).as_str());
    } else {
        // The key alone, so that it can be taken by a script.
        out::line(text);
        let end = record.expires.map_or_else(
            || "never ends".to_owned(),
            |at| format!("ends {}", date::day(at)),
        );
        out::note(&out::paint(
            out::DIM,
            &format!(
                "key `{}` of {} {end}; it is shown this once and kept nowhere; policies know it as Key::\"{}\", whoever answers for it",
                record.name, record.owner, record.name
            ),
        ));
    }
    Ok(())
}

fn list(args: &List, spec: &KeysSpec) -> Result<(), String> {
    let now = unix_seconds();
    let used = last_used(&spec.file);
    let file = read(&spec.file)?;
    let keys: Vec<&KeyRecord> = file
        .keys
        .iter()
        .filter(|record| args.all || record.is_live(now))
        .collect();
    if args.json {
        let all: Vec<Json> = keys
            .iter()
            .map(|record| shown(record, used.get(&record.id).copied()))
            .collect();
        out::line(Json::array(&all).as_str());
        return Ok(());
    }
    let heading = [
        "ID",
        "NAME",
        "OWNER",
        "GROUPS",
        "SCOPES",
        "ENDS",
        "LAST USED",
        "STATE",
    ];
    let rows: Vec<Vec<String>> = keys
        .iter()
        .map(|record| row(record, used.get(&record.id).copied(), now))
        .collect();
    if out::to_terminal() {
        if rows.is_empty() {
            out::note("no keys; `usher keys create NAME --owner WHO` makes one");
        } else {
            out::line(&aligned(&heading, &rows));
        }
    } else {
        out::line(&heading.join("\t"));
        rows.iter().for_each(|row| out::line(&row.join("\t")));
    }
    Ok(())
}

fn revoke(args: &Revoke, spec: &KeysSpec) -> Result<(), String> {
    let now = unix_seconds();
    let mut revoked = None;
    change(&spec.file, |file| {
        let is_it = |one: &KeyRecord| one.id == args.key || one.name == args.key;
        let live = |one: &KeyRecord| one.revoked.is_none();
        let names = file.keys.iter().filter(|one| live(one));
        let names: Vec<String> = names.map(|one| one.name.clone()).collect();
        let known = file.keys.iter().any(is_it);
        let mut all = file.keys.iter_mut();
        let Some(one) = all.find(|one| live(one) && is_it(one)) else {
            if known {
                return Err(format!("key `{}` is revoked already", args.key));
            }
            let near = near::near(&args.key, &names);
            let hint = near.first().map_or_else(
                || "`usher keys list` shows them".to_owned(),
                |name| format!("did you mean `{name}`?"),
            );
            return Err(format!(
                "no key `{}` that could be revoked; {hint}",
                args.key
            ));
        };
        one.revoked = Some(now);
        revoked = Some(one.clone());
        Ok(())
    })?;
    let Some(one) = revoked else { return Ok(()) };
    if args.json {
        out::line(shown(&one, None).as_str());
    } else {
        out::line(&format!(
            "key `{}` ({}) of {} is revoked; a running gateway refuses it within seconds",
            one.name, one.id, one.owner
        ));
    }
    Ok(())
}

/// Changes the file as nobody else does at the same time.
fn change(
    file: &Path,
    alter: impl FnOnce(&mut KeyFile) -> Result<(), String>,
) -> Result<(), String> {
    let told = |path: &Path, error: &io::Error| {
        let hint = if error.kind() == io::ErrorKind::NotFound {
            "; there is no such directory"
        } else {
            ""
        };
        format!("{}: {error}{hint}", path.display())
    };
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let held = File::create(&lock).map_err(|error| told(&lock, &error))?;
    held.lock().map_err(|error| told(&lock, &error))?;
    let mut keys = read(file)?;
    alter(&mut keys)?;
    replace(file, keys.text().as_bytes()).map_err(|error| told(file, &error))
}

fn read(file: &Path) -> Result<KeyFile, String> {
    match std::fs::read(file) {
        Ok(text) => KeyFile::parse(&text).map_err(|error| format!("{}: {error}", file.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(KeyFile::default()),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

/// A record as JSON: everything but the hash.
fn shown(record: &KeyRecord, used: Option<u64>) -> Json {
    let texts =
        |list: &[String]| Json::array(&list.iter().map(|it| Json::string(it)).collect::<Vec<_>>());
    meta::object_of(&[
        ("id", Json::string(&record.id)),
        ("name", Json::string(&record.name)),
        ("owner", Json::string(&record.owner)),
        ("groups", texts(&record.groups)),
        ("scopes", texts(&record.scopes)),
        ("tenant", Json::of(&record.tenant)),
        ("created", Json::of(&record.created)),
        ("expires", Json::of(&record.expires)),
        ("revoked", Json::of(&record.revoked)),
        ("last_used", Json::of(&used)),
    ])
}

fn row(record: &KeyRecord, used: Option<u64>, now: u64) -> Vec<String> {
    let listed = |list: &[String]| {
        if list.is_empty() {
            "-".to_owned()
        } else {
            list.join(",")
        }
    };
    let state = match record {
        KeyRecord {
            revoked: Some(at), ..
        } => format!("revoked {}", date::day(*at)),
        KeyRecord {
            expires: Some(at), ..
        } if *at <= now => "expired".to_owned(),
        KeyRecord { .. } => "live".to_owned(),
    };
    vec![
        record.id.clone(),
        out::tame(&record.name),
        out::tame(&record.owner),
        out::tame(&listed(&record.groups)),
        out::tame(&listed(&record.scopes)),
        record.expires.map_or_else(|| "never".to_owned(), date::day),
        used.map_or_else(|| "-".to_owned(), |at| ago(now.saturating_sub(at))),
        state,
    ]
}

/// How long ago, as people say it.
fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn ages_are_shown_as_people_say_them_and_lifetimes_are_read_so() {
        assert_eq!(
            [ago(5), ago(7_300), ago(200_000)],
            ["just now", "2 h ago", "2 d ago"]
        );
        assert!(lifetime("soon").is_err() && lifetime("0d").is_err());
        assert!(matches!(lifetime("30d"), Ok(Lifetime::For(_))));
        assert!(matches!(lifetime("3650d"), Ok(Lifetime::For(_))));
        for long in ["3661d", "99999999999d"] {
            assert!(
                lifetime(long).is_err_and(|why| why.contains("never")),
                "{long}"
            );
        }
    }

    #[test]
    fn a_name_is_taken_until_its_key_is_revoked_and_a_failed_change_changes_nothing() {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("keys.json");
        let spec = KeysSpec {
            file: file.clone(),
            secret: "0123456789abcdef0123456789abcdef".into(),
        };
        let create = |name: &str| {
            let args = Create {
                name: name.into(),
                owner: "ana".into(),
                groups: Vec::new(),
                scopes: Vec::new(),
                tenant: None,
                expires: Lifetime::Never,
                json: false,
                source: Source::default(),
            };
            make(&args, &spec)
        };
        let revoke = |key: &str| {
            let args = Revoke {
                key: key.into(),
                json: false,
                source: Source::default(),
            };
            revoke(&args, &spec)
        };
        create("ci").unwrap();
        let before = std::fs::read(&file).unwrap();
        assert!(create("ci").unwrap_err().contains("already"));
        assert!(create("\n").is_err());
        assert!(revoke("c1").unwrap_err().contains("did you mean `ci`?"));
        assert_eq!(std::fs::read(&file).unwrap(), before);
        revoke("ci").unwrap();
        assert_eq!(revoke("ci").unwrap_err(), "key `ci` is revoked already");
        assert!(!revoke("c1").unwrap_err().contains("did you mean"));
        create("ci").unwrap();
        let mut keys = read(&file).unwrap();
        assert_eq!(keys.keys.len(), 2);
        // A file that holds more than can be read would take all keys along.
        let one = keys.keys[0].clone();
        let more = (2..MOST).map(|n| KeyRecord {
            id: format!("{n:08}"),
            ..one.clone()
        });
        keys.keys.extend(more);
        replace(&file, &serde_json::to_vec(&keys).unwrap()).unwrap();
        let full = std::fs::metadata(&file).unwrap().len();
        assert!(create("another").unwrap_err().contains("holds no more"));
        assert_eq!(std::fs::metadata(&file).unwrap().len(), full);
    }
}
