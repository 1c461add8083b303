//! What to suggest for a word that is not known.

use strsim::osa_distance;

/// Keys that the product describes and this version does not have.
const NOT_BUILT_YET: [&str; 2] = ["approvals", "valkey"];

/// What the files of many clients have in the place of our block.
const OF_CLIENTS: [&str; 3] = ["mcpServers", "mcp_servers", "servers"];

/// A hint for an unknown word among `known` ones: the likely one, or all of them.
pub(super) fn unknown(kind: &str, word: &str, known: &[&str]) -> String {
    if OF_CLIENTS.contains(&word) && ["listen", "upstreams"].iter().all(|it| known.contains(it)) {
        return "servers stand under `upstreams` here; `usher import FILE` turns the file of another program into a configuration".into();
    }
    if let Some(close) = nearest(word, known) {
        return format!("did you mean `{close}`?");
    }
    // The files of many clients have it beside `command`.
    if word == "args" && known.contains(&"command") {
        return "the arguments follow the program: `command: [npx, -y, some-server]`".into();
    }
    if NOT_BUILT_YET.contains(&word) {
        return format!("`{word}` is not built yet; leave it out");
    }
    let list: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    if list.is_empty() {
        format!("no {kind} can stand here")
    } else {
        format!("there is {}", list.join(", "))
    }
}

/// The known word that `word` is most likely meant to be, if one is close enough.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let folded = word.to_ascii_lowercase().replace('-', "_");
    known
        .iter()
        .map(|name| (osa_distance(&folded, name), *name))
        .filter(|(distance, name)| *distance <= 1.max(name.len().min(folded.len()) / 3))
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_words_are_suggested_and_unlikely_ones_are_not() {
        assert_eq!(nearest("adress", &["address", "hosts"]), Some("address"));
        assert_eq!(nearest("comand", &["command", "cwd"]), Some("command"));
        assert_eq!(nearest("pageSize", &["page_size"]), Some("page_size"));
        assert_eq!(nearest("ulr", &["url", "env"]), Some("url"));
        assert_eq!(nearest("zebra", &["url", "env"]), None);
    }

    #[test]
    fn arguments_beside_a_command_are_told_where_they_belong() {
        let hint = unknown("key", "args", &["url", "command", "env", "tags", "auth"]);
        assert!(hint.contains("`command: [npx, -y, some-server]`"), "{hint}");
        assert!(unknown("key", "args", &["listen"]).contains("there is `listen`"));
    }

    #[test]
    fn the_block_of_other_programs_is_answered_with_ours_and_with_how_to_take_it_over() {
        for word in OF_CLIENTS {
            let hint = unknown("key", word, &["listen", "upstreams", "sessions"]);
            assert!(hint.contains("`upstreams`"), "{hint}");
            assert!(hint.contains("`usher import FILE`"), "{hint}");
        }
        assert!(unknown("key", "mcpServers", &["tools", "upstreams"]).contains("there is `tools`"));
    }

    #[test]
    fn what_a_later_version_brings_is_called_not_built_yet() {
        assert!(unknown("key", "valkey", &["listen"]).contains("not built yet"));
        assert!(unknown("key", "zebra", &["listen"]).contains("there is `listen`"));
    }
}
