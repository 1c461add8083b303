//! What a secret is called, in names of fields, variables and parameters, in titles, and in what describes a field.
//!
//! Guarantees: linear in the name; letters that look like Latin ones are read as those, and digits as the letters that they
//! stand for. Of other languages than English the words for a password are known, and of what describes a field in one nothing but
//! those. Deliberately absent: any look at values.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_security::skeleton;

/// Words that only a secret is called by, as whole words of a name.
const WORDS: [&str; 20] = [
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "secrets",
    "apikey",
    "token",
    "credential",
    "credentials",
    "cvv",
    "cvc",
    "cvv2",
    "ssn",
    "otp",
    "totp",
    "pin",
    "mnemonic",
];
/// The same of several words.
const PHRASES: [&str; 11] = [
    "api key",
    "access key",
    "private key",
    "secret key",
    "signing key",
    "card number",
    "credit card",
    "security code",
    "social security",
    "one time code",
    "seed phrase",
];
/// What only a secret is called by wherever it stands: in a longer word, or taken apart.
const ANYWHERE: [&str; 4] = ["password", "passwd", "passphrase", "passcode"];
/// Words of other languages that only a secret is called by wherever they stand, as those who write without spaces put them between
/// others, and others make one word of several.
const ABROAD: [&str; 26] = [
    // German, Dutch
    "passwort",
    "passwörter",
    "kennwort",
    "geheimzahl",
    "wachtwoord",
    // French
    "mot de passe",
    "mots de passe",
    "code confidentiel",
    // Spanish, Portuguese
    "contraseña",
    "palavra-passe",
    // Russian, in all its cases
    "парол",
    // Chinese, Japanese, Korean
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "暗証番号",
    "비밀번호",
    // Arabic, Persian, Hebrew
    "كلمة المرور",
    "كلمات المرور",
    "كلمة السر",
    "الرقم السري",
    "رمز عبور",
    "گذرواژه",
    "סיסמה",
    "סיסמא",
    // Hindi; `पिन कोड` is there what is written on letters.
    "पासवर्ड",
];
/// The same as whole words: longer ones mean other things.
const ABROAD_ALONE: [&str; 7] = [
    // Portuguese
    "senha", "senhas", // Polish
    "hasło", "haslo", // Turkish
    "şifre", "sifre", // Korean
    "암호",
];
/// Words that only a secret is called by where a field is described, too; others there may be of anything.
const SPOKEN: [&str; 6] = ["otp", "totp", "cvv", "cvc", "cvv2", "ssn"];
/// As many letters a word has at least of which others may stand with a number behind: `password1`, but not `pin1`.
const NUMBERED: usize = 5;

/// Whether a secret is called so.
pub(super) fn is_secret(name: &str) -> bool {
    let words = words(name);
    let has = |word: &str| WORDS.contains(&word);
    let is_one = |word: &str| {
        let bare = word.trim_end_matches(|character: char| character.is_ascii_digit());
        has(word) || (bare.len() >= NUMBERED && has(bare)) || has(&lettered(word))
    };
    words.split(' ').any(is_one)
        || PHRASES.iter().any(|phrase| holds(&words, phrase).is_some())
        || is_written_together(&words)
        || is_abroad(&words)
}

/// Whether one of another language is in these words.
fn is_abroad(words: &str) -> bool {
    let joined = together(words);
    let anywhere = |name: &String| {
        let mut found = joined.match_indices(&**name);
        found.any(|(at, name)| !is_a_study(name, &joined[at + name.len()..]))
    };
    let alone = |name: &String| holds(words, name).is_some();
    READ[0].iter().any(anywhere) || READ[1].iter().any(alone)
}

/// Whether what begins with the Chinese word for a password is cryptography, the study of those.
fn is_a_study(name: &str, behind: &str) -> bool {
    name.starts_with('密') && behind.starts_with(['学', '學'])
}

/// [`ABROAD`] and [`ABROAD_ALONE`], read as names are.
static READ: LazyLock<[Vec<String>; 2]> = LazyLock::new(|| {
    let anywhere = ABROAD.into_iter().map(|name| together(&words(name)));
    [
        anywhere.collect(),
        ABROAD_ALONE.into_iter().map(words).collect(),
    ]
});

/// Words without what stands between them.
fn together(words: &str) -> String {
    lettered(words).replace(' ', "")
}

/// Whether what describes a field says that a secret is its value: `Your account password`, and not `Where to send the link
/// that resets your password`.
pub(super) fn is_asked_for(description: &str) -> bool {
    const FIRST: [&str; 20] = [
        "a", "account", "an", "confirm", "current", "enter", "give", "input", "login", "my", "new",
        "old", "paste", "please", "provide", "repeat", "the", "type", "user", "your",
    ];
    const NOT: [&str; 14] = [
        "change", "forget", "forgot", "how", "if", "link", "never", "no", "not", "reset", "when",
        "where", "whether", "without",
    ];
    // Behind `or` stands what may be chosen instead.
    const NEXT: [&str; 10] = [
        "again", "and", "at", "below", "for", "here", "in", "of", SLASH, "to",
    ];
    /// What still is the secret: a card number, the code of a one time password.
    const PART: [&str; 2] = ["code", "number"];
    /// How a `/` is called, which is no word.
    const SLASH: &str = "slash";
    const BEFORE: usize = 5;
    let words = if description.contains('/') {
        words(&description.replace('/', " slash "))
    } else {
        words(description)
    };
    // How a sentence of another language goes on is not known here.
    let joined = together(&words);
    if READ.iter().flatten().any(|name| *name == joined) {
        return true;
    }
    let first = |names: &[&str]| {
        let found = names
            .iter()
            .filter_map(|name| Some((holds(&words, name)?, name.len())));
        found.min()
    };
    let is_value = |(at, length): (usize, usize)| {
        let before = words[..at].split_whitespace();
        let before: Vec<&str> = before.filter(|word| *word != SLASH).collect();
        let mut behind = words[at + length..].split_whitespace();
        let next = behind.find(|word| !PART.contains(word));
        before.len() <= BEFORE
            && before.first().is_none_or(|word| FIRST.contains(word))
            && !before.iter().any(|word| NOT.contains(word))
            && next.is_none_or(|word| NEXT.contains(&word))
    };
    // Beside one of the short ones stands what else it may be: `Your OTP or password`.
    let names = [
        first(&PHRASES).into_iter().chain(first(&ANYWHERE)).min(),
        first(&SPOKEN),
    ];
    names.into_iter().flatten().any(is_value)
}

/// Where these words begin in others, as whole words.
fn holds(words: &str, phrase: &str) -> Option<usize> {
    let mut found = words.match_indices(phrase).map(|(at, _)| at);
    found.find(|at| {
        let (before, behind) = (&words[..*at], &words[at + phrase.len()..]);
        (before.is_empty() || before.ends_with(' '))
            && (behind.is_empty() || behind.starts_with(' '))
    })
}

/// Whether one stands within a word, or is made of several from the beginning of one on.
fn is_written_together(words: &str) -> bool {
    let mut joined = String::with_capacity(words.len());
    let mut ends = Vec::new();
    for word in words.split(' ') {
        joined.push_str(&lettered(word));
        ends.push(joined.len());
    }
    ANYWHERE.iter().any(|name| {
        joined.match_indices(name).any(|(at, _)| {
            let word = ends.partition_point(|end| *end <= at);
            let begins = at == 0 || word.checked_sub(1).is_some_and(|last| ends[last] == at);
            begins || ends.get(word).is_some_and(|end| at + name.len() <= *end)
        })
    })
}

/// A word in which digits stand for letters.
fn lettered(word: &str) -> String {
    let letter = |character: char| match character {
        '0' => 'o',
        '1' => 'l',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '7' => 't',
        character => character,
    };
    word.chars().map(letter).collect()
}

/// The words of a name in small letters, one space between two: `maxTokens`, `MAX_TOKENS` and `max-tokens` are `max tokens`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut lower = false;
    let mut add = |character: char| {
        if character.is_alphanumeric() {
            if character.is_uppercase() && lower {
                words.push(' ');
            }
            lower = character.is_lowercase();
            words.extend(character.to_lowercase());
        } else {
            lower = false;
            if !words.is_empty() && !words.ends_with(' ') {
                words.push(' ');
            }
        }
    };
    if name.is_ascii() {
        name.chars().for_each(&mut add);
    } else {
        name.nfkc().for_each(|character| plain(character, &mut add));
    }
    words.truncate(words.trim_end().len());
    words
}

/// The Latin letters that a character looks like, or itself.
fn plain(character: char, add: &mut impl FnMut(char)) {
    if character.is_ascii() {
        return add(character);
    }
    let mut bytes = [0; 4];
    let mut alike = false;
    for one in skeleton(character.encode_utf8(&mut bytes)).filter(char::is_ascii) {
        alike = true;
        add(one);
    }
    if !alike {
        add(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_however_their_names_are_written() {
        for name in [
            "password",
            "PassWord",
            "pass_word",
            "userPassword1",
            "mypassword",
            "passw0rd",
            "P455W0RD",
            "t0ken",
            "token2",
            "X_PASSWORD_",
            "ｐａｓｓｗｏｒｄ",
            "Ρassword",
            "раѕѕԝогԁ",
            "pass\u{200B}word",
            "API key",
            "Your API key (optional)",
            "Passwort",
            "benutzerPasswort",
            "Neues Kennwort",
            "contraseña",
            "contrasen\u{303}a",
            "CONTRASEÑA_NUEVA",
            "mot_de_passe",
            "motDePasse",
            "Votre mot de passe",
            "senha",
            "Palavra-passe",
            "hasło",
            "HASŁO",
            "haslo",
            "Wachtwoord",
            "Şifre",
            "пароль",
            "ПАРОЛЬ",
            "Введите пароль",
            "密码",
            "请输入您的密码",
            "密码学的密码",
            "密碼",
            "パスワード",
            "暗証番号",
            "비밀번호",
            "암호",
            "كلمة المرور",
            "رمز عبور",
            "סיסמה",
            "पासवर्ड",
        ] {
            assert!(is_secret(name), "{name}");
        }
        let long = format!("{} password", "x".repeat(4_000));
        assert!(is_secret(&long));
        for name in [
            "",
            "email",
            "maxTokens",
            "tokens",
            "pinned",
            "pin1",
            "secretary",
            "key",
            "passport",
            "compass word",
            "compass",
            "monkey",
            "字",
            "cvcs",
            // Words that only look like those of other languages.
            "desenhar",
            "motif de passage",
            "mot",
            "contraste",
            "chiffre",
            "암호화",
            "暗号",
            "पिन कोड",
            "密码学",
            "密碼學",
            "密码学课程",
            "пар",
            "wort",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn what_describes_a_field_asks_for_a_secret_or_only_speaks_of_one() {
        for asks in [
            "Your account password",
            "Enter your password.",
            "Please enter the password for the database",
            "Password",
            "The API key of your account",
            "Your GitHub account's private key",
            "Your Ρassword",
            "Your password/passphrase",
            "your OTP code / credit card number CVV",
            "Your credit card number",
            "Enter the CVV of your card",
            "Enter your OTP or password",
            "Your SSN or password",
            "The OTP account password",
            "Your e-mail/username and password",
            "/ Your password",
            "Passwort",
            "Mot de passe :",
            "密码",
        ] {
            assert!(is_asked_for(asks), "{asks}");
        }
        for speaks in [
            "",
            "Where to send the link that resets your password",
            "The e-mail address to which we send the password",
            "Your user name (not your password)",
            "Do you want to reset your password?",
            "The password policy of the team",
            "The API key name",
            "The token to search for",
            "How many credit cards there are",
            "E-mail for password recovery",
            "The credit card number format",
            "The OTP provider",
            "Where to send the code/password",
            "Your user/role, never a password",
            "Wohin der Link geht, mit dem Sie Ihr Passwort zurücksetzen",
        ] {
            assert!(!is_asked_for(speaks), "{speaks}");
        }
    }
}
