//! The phrases in English.

use super::{
    Kind::{Conceal, Credentials, Direct, Override},
    Phrase,
};

const SET_ASIDE: &str = "ignore|disregard|forget|override|bypass|discard|neglect|set aside|do not follow|don't follow|stop following|pay no attention to|ignoring|disregarding|cancel|void";
const EARLIER: &str = "previous|prior|above|earlier|preceding|all of your|all your|all the|all other|any other|your|original|initial|existing|former|system|everything|safety|developer's|developer|old|these|those|any|all";
const INSTRUCTIONS: &str = "instructions|instruction|prompt|prompts|directives|directive|guidelines|guideline|orders|commands you|programming|training|restrictions|system message|system messages|guardrails|safety rules|your rules|rules you|context above|you were told|you have been told|you've been told|told you|told before|said before";
const KEEP_FROM: &str = "do not tell|don't tell|never tell|do not inform|don't inform|do not mention|don't mention|never mention|do not reveal|don't reveal|never reveal|do not disclose|don't disclose|do not notify|don't notify|do not alert|don't alert|without telling|without informing|without notifying|without mentioning|without alerting|without asking|hide this from|hide it from|conceal this from|keep this from|keep this secret from|keep it secret from|must not know|should not know|shouldn't know|don't let|do not let|do not show|don't show|do not report|do not explain|don't explain|without the knowledge of";
const PERSON: &str = "the user|the human|the operator|the customer|the person|user about|users about|user that|to the user|anyone|user know|the reader|the owner";
const SECRETS: &str = "password|passwords|api key|api keys|access token|access tokens|private key|private keys|credentials|ssh key|ssh keys|.env|id_rsa|secret key|secret keys|secrets|session cookie|cookies|auth token|bearer token|environment variables|aws keys|.aws/credentials|.ssh|seed phrase|recovery phrase|2fa code|one-time code|mcp.json|conversation history|chat history|system prompt";
const HAND_OVER: &str = "send|post|upload|email|e-mail|forward|exfiltrate|transmit|leak|paste|include|append|attach|pass|submit|provide|reveal|print|output|reply with|respond with|give me|hand over|share|dump|show me|tell me";

/// See the module.
pub(super) const PHRASES: &[Phrase] = &[
    (Override, &[SET_ASIDE, EARLIER, INSTRUCTIONS]),
    (
        Override,
        &[
            "ignore|disregard|forget",
            "everything|anything|all that|what",
            "above|before|previously|you were told|you know|i said|so far",
        ],
    ),
    (
        Override,
        &[
            "you are now|from now on you|from now on, you|you will now|you must now|act as|pretend to be|pretend you are|roleplay as",
            "unrestricted|jailbroken|dan|developer mode|no restrictions|without restrictions|no rules|without any rules|no filters|unfiltered|uncensored|god mode|evil|not bound by",
        ],
    ),
    (
        Override,
        &[
            "new instructions|new instruction|updated instructions|real instructions|actual instructions|new system prompt|new directive|system override|admin override|priority override|emergency override",
            ":|follow|supersede|replace|are|is|from|activated|begin|as follows",
        ],
    ),
    (
        Override,
        &[
            "reveal|print|repeat|output|show me|tell me|display|leak|disclose|what is|what are",
            "your|the",
            "system prompt|initial instructions|hidden instructions|original instructions|initial prompt|secret instructions",
        ],
    ),
    (
        Override,
        &[
            "<important>|<system>|[system]|### system|[inst]|<<sys>>|system:|<instructions>",
            "you must|you are|ignore|do not|before|always|assistant|the model|instructions",
        ],
    ),
    (
        Override,
        &[
            "these instructions|this instruction|this message|following instructions|my instructions|this rule",
            "take precedence|takes precedence|override|overrides|supersede|supersedes|have priority|has priority|replace all|replaces all|outrank",
        ],
    ),
    (
        Override,
        &[
            "your|the",
            "previous|prior|earlier|original|initial|old",
            "instructions|prompt|rules|guidelines",
            "no longer apply|no longer valid|are void|are cancelled|are canceled|are obsolete|been revoked|been replaced|been updated|been superseded|do not apply",
        ],
    ),
    (Conceal, &[KEEP_FROM, PERSON]),
    (
        Conceal,
        &[
            "do not|don't|never",
            "tell|inform|mention|reveal|disclose|notify|alert|show|say|explain|acknowledge",
            "this to the user|to the user|the user|to anyone|to the human|the human",
        ],
    ),
    (
        Conceal,
        &[
            "do this|act|proceed|execute|run|send|call|perform",
            "silently|secretly|covertly|quietly|in secret|without confirmation|without asking|without user|without permission|behind the scenes|in the background without",
        ],
    ),
    (
        Conceal,
        &[
            "user|human|operator",
            "must not|should not|shouldn't|mustn't|must never|need not|doesn't need to|does not need to|cannot",
            "know|see|notice|find out|be told|be informed|learn|be aware",
        ],
    ),
    (
        Conceal,
        &[
            "keep",
            "this|it",
            "secret|hidden|confidential|between us|to yourself",
            "user|human|anyone|reader|us",
        ],
    ),
    (
        Direct,
        &[
            "before|prior to|instead of|whenever|every time|each time|always when",
            "using|calling|invoking|you use|you call|running|you run|executing|you invoke|answering|you answer|responding|you respond|replying",
            "this tool|any tool|any other tool|another tool|other tools|the tool|tool|the user|a question|function",
            "you must|you should|must first|first|always|make sure to|be sure to|it is required|required to|call|read|use",
            "read|call|use|invoke|run|execute|open|fetch|send|pass|include|load|query",
        ],
    ),
    (
        Direct,
        &[
            "you must|always|make sure to|be sure to|you should|you need to|first",
            "call|invoke|use|run|execute",
            "this tool|the tool",
            "before|instead of|first|prior to|after",
            "any other|other tool|other tools|every other|all other|any tool|all tools|each|answering",
        ],
    ),
    (
        Direct,
        &[
            "when|whenever|if",
            "send_email|send email|email tool|sending email|sending an email|sending a message|other tool|write_file|another server|other server|other mcp|any other tool|file tool",
            "always|must|instead|also|change|replace|add|bcc|copy",
            "recipient|bcc|address|to:|send to|parameter|argument|call|cc",
        ],
    ),
    (
        Direct,
        &[
            "do not use|don't use|never use|stop using|avoid using",
            "any other tool|other tools|the other tool|another tool|any other server|built-in tool|official tool",
            "use|call|only|this|instead|always|because",
        ],
    ),
    (
        Direct,
        &[
            "assistant|ai agent|ai assistant|language model|llm|ai model|ai system|copilot|claude|chatgpt|gemini",
            "reading this|processing this|that reads this|reads this|parsing this|summarizing this|if you are|you must|must now",
            "call|run|send|visit|execute|must|ignore|open|fetch|click|recommend|please|do|say",
        ],
    ),
    (
        Direct,
        &[
            "to complete|to finish|to use|in order to use|for this tool to work|required for",
            "tool|task|request|function|step",
            "read|open|load|cat|fetch",
            "~/.ssh|.env|mcp.json|id_rsa|.aws|/etc/passwd|config.json|credentials|.cursor",
            "pass|send|include|content|contents|as|and",
        ],
    ),
    (
        Credentials,
        &[
            HAND_OVER,
            SECRETS,
            "to http|to https|to the following|to this|to attacker|to the url|to me|as a parameter|as the|in the|in your|as an argument|to our|to verify|here|back|below|sidenote|so that|for verification|to continue|to proceed|to support|with the",
            "http|url|address|server|endpoint|parameter|argument|request|field|response|reply|message|webhook|email|continue|proceed|verification|identity|support|account|sidenote|tool|query|access|body|next",
        ],
    ),
    (
        Credentials,
        &[
            "read|open|cat|fetch|collect|find|search for|gather|get|extract|retrieve|locate",
            "~/.ssh|id_rsa|.env|~/.aws|mcp.json|/etc/shadow|/etc/passwd|private key|credentials file|api keys|passwords|stored credentials|saved passwords|secrets",
            "and send|and pass|and include|and post|and upload|and email|then send|then pass|and return|and put|and append|and exfiltrate|and forward|its content|its contents|then upload|then post|and share|and provide",
        ],
    ),
    (
        Credentials,
        &[
            "enter|provide|type|confirm|give|supply|tell us|tell me|verify|send us|send me|reply with|share",
            "your|the user's|users'|their",
            "password|api key|credit card|social security number|access token|private key|seed phrase|recovery phrase|2fa code|one-time code|pin code|bank details|login credentials|credentials|ssn",
            "to continue|to proceed|to verify your|to unlock|to restore|immediately|for verification|in this chat|or your account|to avoid",
        ],
    ),
    (
        Credentials,
        &[
            "ask|request|prompt",
            "the user|user|them|human",
            "for their|for the|to provide|to enter|to share|to paste|for his|for your",
            "password|api key|credit card|access token|private key|seed phrase|recovery phrase|2fa code|one-time code|credentials|secret key|login",
            "and send|and pass|then|and include|to continue|and forward|and call|and submit|and store|and return|so",
        ],
    ),
];
