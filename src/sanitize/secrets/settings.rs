//! Where a password stands that only settings of a connection have there.
//! Such are variables of programs, sections of their files, arguments of a call that connects.
//!
//! Guarantees: looks no farther than [`AROUND`] bytes. Deliberately absent: what a password looks like (`grammar.rs`).

use super::{bytes::is_token, plausible::holds};
use crate::sanitize::work::looked;

/// How far before a password what it is told by may stand, in bytes, and half as far behind.
pub(super) const AROUND: usize = 240;

/// Variables from which programs take the password of a connection.
const VARIABLES: [&[u8]; 22] = [
    b"PGPASSWORD",
    b"MYSQL_PWD",
    b"SSHPASS",
    b"POSTGRES_PASSWORD",
    b"MYSQL_PASSWORD",
    b"MYSQL_ROOT_PASSWORD",
    b"MARIADB_ROOT_PASSWORD",
    b"MONGO_INITDB_ROOT_PASSWORD",
    b"RABBITMQ_DEFAULT_PASS",
    b"MINIO_ROOT_PASSWORD",
    b"MSSQL_SA_PASSWORD",
    b"CLICKHOUSE_PASSWORD",
    b"SNOWFLAKE_PASSWORD",
    b"snowflake_password",
    b"snowflakePassword",
    b"ELASTIC_PASSWORD",
    b"GF_SECURITY_ADMIN_PASSWORD",
    b"KEYCLOAK_ADMIN_PASSWORD",
    b"RESTIC_PASSWORD",
    b"BORG_PASSPHRASE",
    b"TWINE_PASSWORD",
    b"mavenPassword",
];

/// What stands around a password with which packages are fetched or sent: all of one row.
const PACKAGES: [&[&[u8]]; 4] = [
    // Of Maven, NuGet, Composer and PyPI.
    &[b"<server>", b"<username>"],
    &[b"\"cleartextpassword\""],
    &[b"\"http-basic\"", b"\"username\""],
    &[b"\nrepository", b"//", b"\nusername"],
];

/// Sections of the files that programs of MySQL read.
const SECTIONS: [&[u8]; 6] = [
    b"client",
    b"mysql",
    b"mysqldump",
    b"mysqladmin",
    b"mysqld",
    b"mariadb",
];

/// Arguments that say where to connect.
const ARGUMENTS: [&[u8]; 7] = [
    b"host=",
    b"hostname=",
    b"server=",
    b"servername=",
    b"dbname=",
    b"database=",
    b"dsn=",
];

/// Whether a program takes its password from the variable whose name ends `text`, perhaps in quotes and brackets.
pub(super) fn is_variable(text: &[u8]) -> bool {
    let around = |byte: &&u8| matches!(byte, b' ' | b'"' | b'\'' | b'\\' | b']');
    let end = text.len() - text.iter().rev().take(4).take_while(around).count();
    VARIABLES.iter().any(|known| {
        let before = text[..end].strip_suffix(*known);
        // What a shell takes where a variable has no value is no password.
        before.is_some_and(|before| {
            !before.last().is_some_and(|last| is_token(*last)) && !before.ends_with(b"${")
        })
    })
}

/// Whether a name that begins at `name` stands in a section of a file that programs of MySQL read, or behind a server of ODBC.
pub(super) fn is_in_file(text: &[u8], name: usize) -> bool {
    let before = &text[name.saturating_sub(AROUND)..name];
    looked(before.len());
    for line in before.rsplit(|byte| *byte == b'\n').skip(1) {
        // A sign stands before the lines of a change, and the name of a member before the first of a string.
        let line = line.trim_ascii();
        let line = line.strip_prefix(b"+").unwrap_or(line);
        let line = line.strip_prefix(b"-").unwrap_or(line);
        if let Some(section) = line.strip_suffix(b"]") {
            let open = section.iter().rposition(|byte| *byte == b'[');
            return open.is_some_and(|open| {
                let first = section[..open].trim_ascii();
                SECTIONS.contains(&&section[open + 1..])
                    && first.last().is_none_or(|last| b":+-".contains(last))
            });
        }
        let server = line
            .first_chunk::<10>()
            .is_some_and(|word| word.eq_ignore_ascii_case(b"servername"));
        if server && line[10..].trim_ascii_start().starts_with(b"=") {
            return true;
        }
    }
    false
}

/// Whether the settings of a program that fetches or sends packages are in what stands `around` a password.
pub(super) fn is_of_packages(around: &[u8]) -> bool {
    PACKAGES
        .iter()
        .any(|parts| parts.iter().all(|part| holds(around, part)))
}

/// Whether what begins at `name` and ends at `end` is an argument beside others that say where to connect:
/// `connect(host="...", password="...")`.
pub(super) fn is_argument(text: &[u8], name: usize, end: usize) -> bool {
    let bracket = |byte: &u8| matches!(byte, b'(' | b')');
    let before = &text[name.saturating_sub(AROUND)..name];
    let after = &text[end..(end + AROUND / 2).min(text.len())];
    looked(before.len() + after.len());
    let Some(open) = before.iter().rposition(bracket) else {
        return false;
    };
    let after = &after[..after.iter().position(bracket).unwrap_or(after.len())];
    before[open] == b'(' && [&before[open + 1..], after].into_iter().any(connects)
}

/// Whether one of [`ARGUMENTS`] stands in a piece of a call.
fn connects(piece: &[u8]) -> bool {
    ARGUMENTS.iter().any(|argument| {
        let mut places = piece.windows(argument.len()).enumerate();
        places.any(|(at, here)| {
            let inside = at.checked_sub(1).map(|last| piece[last]);
            here.eq_ignore_ascii_case(argument)
                && !inside.is_some_and(|byte| byte.is_ascii_alphanumeric())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::strong;

    const PASSWORD: &str = "Wq7!mZ2pLk4Rt";

    #[test]
    fn a_password_among_the_settings_of_a_connection_is_told() {
        for text in [
            format!("PGPASSWORD={PASSWORD} psql"),
            format!("env['MYSQL_PWD'] = '{PASSWORD}'"),
            format!("{{\"SSHPASS\": \"{PASSWORD}\"}}"),
            format!("+[client]\n+user=app\n+password={PASSWORD}\n"),
            format!("text: +[client]\n+user=app\n+password={PASSWORD}\n"),
            format!("text: [mysqldump]\nuser=app\npassword={PASSWORD}\n"),
            format!("[crm]\nDriver = PostgreSQL\nServername = db\nPassword = {PASSWORD}\n"),
            format!("SNOWFLAKE_PASSWORD: \"{PASSWORD}\""),
            format!("export BORG_PASSPHRASE='{PASSWORD}'"),
            format!("GF_SECURITY_ADMIN_PASSWORD={PASSWORD}"),
            format!("mavenUser=ci\nmavenPassword={PASSWORD}\n"),
            format!("<add key=\"ClearTextPassword\" value=\"{PASSWORD}\" />"),
            format!(
                "\"http-basic\": {{\"a.b\": {{\"username\": \"ci\", \"password\": \"{PASSWORD}\"}}}}"
            ),
            format!("[in]\nrepository = https://a.b\nusername = ci\npassword = {PASSWORD}\n"),
            format!("connect(\n    host='db',\n    password='{PASSWORD}',\n)"),
            format!("connect(user='app', password='{PASSWORD}', db_host='db')"),
        ] {
            assert_eq!(strong(&text), [PASSWORD], "{text}");
        }
    }

    #[test]
    fn one_that_stands_near_what_only_looks_so_is_not() {
        for text in [
            format!("MY_PGPASSWORD={PASSWORD}"),
            format!("${{POSTGRES_PASSWORD:-{PASSWORD}}}"),
            format!("see the [client](docs/c.md)\n\n    password: {PASSWORD}"),
            format!("sockets[clientId].login({{password: '{PASSWORD}'}})"),
            format!("[error] [client 10.0.0.1]\npassword: {PASSWORD}"),
            format!("[client]\na = 1\n[app]\npassword = {PASSWORD}"),
            format!("c := tls.Config{{ServerName: h}}\npassword: {PASSWORD}"),
            format!("log(\"uuid=7\")\n user.create(name=\"a\", password=\"{PASSWORD}\")"),
            format!("<user><username>ci</username><password>{PASSWORD}</password></user>"),
            format!("git clone https://h/repository.git\nusername=ci\npassword={PASSWORD}"),
            format!("repository: team/app\nusername: ci\npassword: {PASSWORD}"),
            format!("user.create(ghost=\"a\", password=\"{PASSWORD}\")"),
            format!("connect(host=\"a\")\nlogin(user=\"a\", password=\"{PASSWORD}\")"),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }
}
