//! The phrases: sets of words that stand near each other, in order, with `|` between words of one set.
//!
//! Written for this project, in English and by translation; no collection of attacks was copied. A set must be narrow enough
//! that all of a phrase in one stretch is rare in documentation.

/// What a phrase is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Override,
    Conceal,
    Direct,
    Credentials,
}

/// The rules, in the order of [`Kind`].
pub(super) const KINDS: [&str; 4] = [
    "instruction_override",
    "concealment",
    "cross_tool_direction",
    "credential_request",
];

use Kind::{Conceal, Credentials, Direct, Override};

const SET_ASIDE: &str = "ignore|disregard|forget|override|bypass|discard|neglect|set aside|do not follow|don't follow|stop following|pay no attention to|ignoring|disregarding|cancel|void";
const EARLIER: &str = "previous|prior|above|earlier|preceding|all of your|all your|all the|all other|any other|your|original|initial|existing|former|system|everything|safety|developer's|developer|old|these|those|any|all";
const INSTRUCTIONS: &str = "instructions|instruction|prompt|prompts|directives|directive|guidelines|guideline|orders|commands you|programming|training|restrictions|system message|system messages|guardrails|safety rules|your rules|rules you|context above|you were told|you have been told|you've been told|told you|told before|said before";
const KEEP_FROM: &str = "do not tell|don't tell|never tell|do not inform|don't inform|do not mention|don't mention|never mention|do not reveal|don't reveal|never reveal|do not disclose|don't disclose|do not notify|don't notify|do not alert|don't alert|without telling|without informing|without notifying|without mentioning|without alerting|without asking|hide this from|hide it from|conceal this from|keep this from|keep this secret from|keep it secret from|must not know|should not know|shouldn't know|don't let|do not let|do not show|don't show|do not report|do not explain|don't explain|without the knowledge of";
const PERSON: &str = "the user|the human|the operator|the customer|the person|user about|users about|user that|to the user|anyone|user know|the reader|the owner";
const SECRETS: &str = "password|passwords|api key|api keys|access token|access tokens|private key|private keys|credentials|ssh key|ssh keys|.env|id_rsa|secret key|secret keys|secrets|session cookie|cookies|auth token|bearer token|environment variables|aws keys|.aws/credentials|.ssh|seed phrase|recovery phrase|2fa code|one-time code|mcp.json|conversation history|chat history|system prompt";
const HAND_OVER: &str = "send|post|upload|email|e-mail|forward|exfiltrate|transmit|leak|paste|include|append|attach|pass|submit|provide|reveal|print|output|reply with|respond with|give me|hand over|share|dump|show me|tell me";

/// Every phrase: its kind, and its sets.
pub(super) const PHRASES: &[(Kind, &[&str])] = &[
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
    // German
    (
        Override,
        &[
            "ignoriere|ignorieren sie|vergiss|vergessen sie|missachte|missachten sie|überschreibe|verwirf",
            "vorherigen|bisherigen|vorigen|obigen|früheren|alle|vorangegangenen|deine|ihre|ursprünglichen",
            "anweisungen|anweisung|instruktionen|vorgaben|befehle|regeln|systemprompt|prompt|richtlinien",
        ],
    ),
    (
        Conceal,
        &[
            "sage dem|sag dem|erzähle dem|verrate dem|sagen sie dem|informiere den|informieren sie den|teile dem|erwähne dies|zeige dem|ohne den|ohne dem",
            "benutzer|nutzer|anwender|user|menschen",
            "nichts|nicht|niemals|zu informieren|zu fragen|zu sagen|mitzuteilen",
        ],
    ),
    (
        Credentials,
        &[
            "sende|schicke|senden sie|schicken sie|übermittle|gib|nenne|verrate|lade",
            "passwort|passwörter|zugangsdaten|api-schlüssel|privaten schlüssel|geheimen schlüssel|anmeldedaten|token|ssh-schlüssel",
            "an|per|hoch|ein|http|mir|uns|weiter",
        ],
    ),
    // French
    (
        Override,
        &[
            "ignore|ignorez|oublie|oubliez|ne tiens pas compte|ne tenez pas compte|néglige",
            "instructions|consignes|directives|règles|ordres",
            "précédentes|précédents|antérieures|ci-dessus|initiales|système|d'origine|reçues",
        ],
    ),
    (
        Conceal,
        &[
            "ne dis|ne dites|n'informe|n'informez|ne mentionne|ne mentionnez|ne révèle|ne révélez|ne montre|sans prévenir|sans avertir|sans en informer|sans le dire à",
            "utilisateur|usager|l'utilisateur",
        ],
    ),
    (
        Credentials,
        &[
            "envoie|envoyez|transmets|transmettez|donne|donnez|communique|révèle|fournis",
            "mot de passe|mots de passe|clé api|clés api|clé privée|identifiants|jeton d'accès|clés ssh",
            "à|vers|par|http|moi|ici|dans",
        ],
    ),
    // Spanish
    (
        Override,
        &[
            "ignora|ignore|ignorad|olvida|olvide|descarta|omite|haz caso omiso|no sigas",
            "instrucciones|órdenes|indicaciones|reglas|directrices",
            "anteriores|previas|previos|de arriba|originales|iniciales|del sistema|recibidas",
        ],
    ),
    (
        Override,
        &[
            "ignora|ignore|olvida|olvide|descarta|omite|haz caso omiso",
            "todas|anteriores|previas|tus|las",
            "instrucciones|órdenes|indicaciones|reglas|directrices",
        ],
    ),
    (
        Conceal,
        &[
            "no le digas|no digas|no informes|no menciones|no reveles|no muestres|sin avisar|sin informar|sin decirle|no lo menciones|no le menciones",
            "usuario|usuaria|usuarios",
        ],
    ),
    (
        Credentials,
        &[
            "envía|envíe|manda|mande|transmite|entrega|proporciona|dame|comparte|revela|sube",
            "contraseña|contraseñas|clave api|claves api|clave privada|credenciales|token de acceso|llaves ssh|claves ssh",
            "a|por|al|http|aquí|para|en",
        ],
    ),
    // Portuguese
    (
        Override,
        &[
            "ignore|ignora|esqueça|esquece|desconsidere|desconsidera|descarte",
            "instruções|ordens|regras|diretrizes|orientações",
            "anteriores|prévias|acima|originais|iniciais|do sistema|recebidas",
        ],
    ),
    (
        Override,
        &[
            "ignore|esqueça|desconsidere|descarte",
            "todas|anteriores|suas|as",
            "instruções|ordens|regras|diretrizes",
        ],
    ),
    (
        Conceal,
        &[
            "não diga|não conte|não informe|não mencione|não revele|não mostre|sem avisar|sem informar|sem contar",
            "usuário|utilizador|usuária",
        ],
    ),
    (
        Credentials,
        &[
            "envie|envia|mande|transmita|forneça|entregue|compartilhe|revele",
            "senha|senhas|chave de api|chave api|chave privada|credenciais|token de acesso|chaves ssh",
            "para|por|ao|http|aqui|em",
        ],
    ),
    // Italian
    (
        Override,
        &[
            "ignora|ignorate|ignori|dimentica|dimenticate|trascura|non seguire",
            "istruzioni|ordini|regole|direttive|indicazioni",
            "precedenti|sopra|originali|iniziali|di sistema|ricevute",
        ],
    ),
    (
        Conceal,
        &[
            "non dire|non dirlo|non informare|non menzionare|non rivelare|non mostrare|senza avvisare|senza informare|senza dirlo",
            "utente",
        ],
    ),
    (
        Credentials,
        &[
            "invia|inviate|manda|trasmetti|fornisci|condividi|rivela",
            "password|chiave api|chiavi api|chiave privata|credenziali|token di accesso|chiavi ssh",
            "a|all'|via|http|qui|per|nel",
        ],
    ),
    // Dutch
    (
        Override,
        &[
            "negeer|vergeet|sla over",
            "vorige|eerdere|bovenstaande|voorgaande|alle|je|jouw|uw",
            "instructies|aanwijzingen|opdrachten|regels|richtlijnen|prompt",
        ],
    ),
    (
        Conceal,
        &[
            "vertel|zeg|meld|informeer|laat",
            "gebruiker",
            "niet|niets|nooit|niet weten",
        ],
    ),
    (
        Conceal,
        &[
            "zonder",
            "de gebruiker|gebruiker",
            "te informeren|te vertellen|te vragen|te waarschuwen",
        ],
    ),
    // Polish, Turkish
    (
        Override,
        &[
            "zignoruj|ignoruj|zapomnij|pomiń|zapomnij o",
            "poprzednie|wcześniejsze|powyższe|wszystkie|poprzednich|wcześniejszych|wszystkich",
            "instrukcje|polecenia|zasady|wytyczne|instrukcjach|poleceniach",
        ],
    ),
    (
        Conceal,
        &[
            "nie mów|nie informuj|nie wspominaj|nie ujawniaj|bez wiedzy|bez informowania|nie pokazuj",
            "użytkownikowi|użytkownika|użytkownik",
        ],
    ),
    (
        Override,
        &[
            "önceki|yukarıdaki|tüm|bütün|daha önceki",
            "talimatları|talimatlari|yönergeleri|komutları|kuralları|talimatların",
            "yok say|unut|dikkate alma|görmezden gel|göz ardı et|yoksay",
        ],
    ),
    (
        Conceal,
        &[
            "kullanıcıya|kullanıcının|kullanıcıyı",
            "söyleme|bahsetme|bildirme|haberi olmadan|belirtme|gösterme|bilgilendirme",
        ],
    ),
    // Russian
    (
        Override,
        &[
            "игнорируй|игнорируйте|проигнорируй|забудь|забудьте|Игнорируй|Игнорируйте|Проигнорируй|Забудь|Забудьте|отбрось|не обращай внимания",
            "предыдущие|прежние|все|вышеуказанные|свои|твои|прошлые|предыдущих|системные|всех",
            "инструкции|указания|команды|правила|инструкций|промпт|директивы",
        ],
    ),
    (
        Conceal,
        &[
            "не говори|не сообщай|не упоминай|не раскрывай|не показывай|не рассказывай|Не говори|Не сообщай|Не упоминай|без ведома|не уведомляй|не говорите|не сообщайте",
            "пользователю|пользователя|человеку",
        ],
    ),
    (
        Credentials,
        &[
            "отправь|отправьте|пришли|передай|Отправь|Отправьте|Пришли|Передай|перешли|сообщи",
            "пароль|пароли|ключ api|ключи api|api-ключ|учётные данные|учетные данные|приватный ключ|закрытый ключ|токен",
            "на|по|в|http|мне|нам",
        ],
    ),
    // Chinese
    (
        Override,
        &[
            "忽略|无视|忘记|忘掉|不要遵守|忽視|無視|不理会|不要理会|绕过",
            "之前|以上|先前|所有|此前|上述|前面|原有|系统|你的|上面|一切",
            "指令|指示|提示|命令|规则|规定|要求|限制|說明|提示词|规范",
        ],
    ),
    (
        Conceal,
        &[
            "不要告诉|别告诉|不要告知|不要向|勿告知|不要让|瞒着|不要通知|不要跟|不能让|不得告诉|不要對|不要告訴",
            "用户|使用者|用戶|客户",
        ],
    ),
    (
        Credentials,
        &[
            "发送|发给|上传|提交|提供|发到|泄露|告诉我|把|将|輸入",
            "密码|密钥|口令|令牌|凭据|私钥|凭证|api key|API密钥|密碼",
            "发送|发到|到|给|上传|提交|http|提供|至",
        ],
    ),
    // Japanese
    (
        Override,
        &[
            "以前の|これまでの|上記の|前の|すべての|全ての|今までの|先ほどの|あなたの|元の",
            "指示|命令|プロンプト|ルール|指令|制約|インストラクション",
            "無視|忘れ|破棄|従わない|無効",
        ],
    ),
    (
        Conceal,
        &[
            "ユーザー|ユーザ|利用者|使用者",
            "伝えない|言わない|知らせない|教えない|報告しない|明かさない|伝えず|知られない|通知しない|気づかれ|見せない|隠し|内緒|秘密",
        ],
    ),
    (
        Credentials,
        &[
            "パスワード|秘密鍵|認証情報|APIキー|アクセストークン|トークン|資格情報",
            "送信|送って|アップロード|教えて|転送|入力して|提供して|渡して",
        ],
    ),
    // Korean
    (
        Override,
        &[
            "이전|위의|앞의|모든|기존|지금까지|이전의|앞선",
            "지시|명령|프롬프트|규칙|지침|지시사항",
            "무시|잊어|잊고|따르지",
        ],
    ),
    (
        Conceal,
        &[
            "사용자에게|사용자한테|유저에게|사용자가",
            "말하지|알리지|언급하지|알려주지|보여주지|공개하지|모르게|알지 못하게|밝히지",
        ],
    ),
    (
        Credentials,
        &[
            "비밀번호|암호|api 키|API 키|개인 키|자격 증명|액세스 토큰|토큰",
            "보내|전송|제출|알려|업로드|전달",
        ],
    ),
    // Arabic, Persian, Hebrew
    (
        Override,
        &[
            "تجاهل|انس|تجاهلي|تجاهلوا|لا تتبع|انسى",
            "التعليمات|الأوامر|تعليمات|القواعد|الإرشادات|تعليماتك",
            "السابقة|أعلاه|الأصلية|النظام|السابقه",
        ],
    ),
    (
        Override,
        &[
            "تجاهل|انس|تجاهلوا",
            "جميع|كل|كافة",
            "التعليمات|الأوامر|القواعد|الإرشادات",
        ],
    ),
    (
        Conceal,
        &[
            "لا تخبر|لا تخبري|لا تذكر|دون إخبار|دون علم|لا تُخبر|لا تكشف|بدون علم|لا تُظهر",
            "المستخدم|المستخدمين|للمستخدم",
        ],
    ),
    (
        Credentials,
        &[
            "أرسل|ارسل|قدم|شارك|اكشف|أعطني",
            "كلمة المرور|كلمات المرور|مفتاح api|المفتاح الخاص|بيانات الاعتماد|رمز الوصول|كلمة السر",
            "إلى|الى|على|http|لي|هنا",
        ],
    ),
    (
        Override,
        &[
            "دستورات|دستورهای|دستورالعمل‌های|دستورالعمل های|قوانین|دستورالعمل‌ها|دستورالعملهای",
            "قبلی|پیشین|بالا|پیش|سیستم",
            "نادیده|فراموش|کنار بگذار",
        ],
    ),
    (
        Override,
        &[
            "نادیده بگیر|فراموش کن",
            "دستورات|دستورهای|دستورالعمل",
            "قبلی|پیشین|بالا",
        ],
    ),
    (
        Conceal,
        &[
            "به کاربر|کاربر را|بدون اطلاع کاربر|کاربر",
            "نگو|نگویید|اطلاع نده|خبر نده|نشان نده|مطلع نکن|چیزی نگو",
        ],
    ),
    (
        Override,
        &[
            "התעלם|התעלמי|התעלמו|שכח|שכחי|תתעלם|תשכח",
            "הוראות|ההוראות|הנחיות|ההנחיות|הפקודות|הכללים",
            "קודמות|הקודמות|לעיל|הקודמים|המערכת|המקוריות",
        ],
    ),
    (
        Override,
        &[
            "התעלם|התעלמו|תתעלם|שכח",
            "מכל|כל",
            "הוראות|ההוראות|הנחיות|ההנחיות",
        ],
    ),
    (
        Conceal,
        &[
            "אל תספר|אל תגיד|אל תאמר|אל תזכיר|אל תחשוף|בלי ידיעת|ללא ידיעת|אל תודיע|בלי לספר|אל תגלה",
            "למשתמש|המשתמש|המשתמשים",
        ],
    ),
    // Hindi
    (
        Override,
        &[
            "पिछले|पूर्व|सभी|ऊपर दिए|पहले के|उपरोक्त|पिछली",
            "निर्देशों|निर्देश|आदेशों|नियमों|हिदायतों",
            "अनदेखा|अनदेखी|भूल|नज़रअंदाज़|नजरअंदाज|उपेक्षा|ध्यान न",
        ],
    ),
    (
        Conceal,
        &[
            "उपयोगकर्ता को|यूज़र को|यूजर को|उपयोगकर्ता से",
            "न बताएं|मत बताना|मत बताओ|सूचित न करें|न बताना|जानकारी न दें|मत बताएं|न दिखाएं|छिपाएं|न बताए",
        ],
    ),
    (
        Credentials,
        &[
            "पासवर्ड|एपीआई कुंजी|api कुंजी|निजी कुंजी|क्रेडेंशियल|टोकन",
            "भेजें|भेजो|भेज दें|अपलोड करें|साझा करें|बताएं",
        ],
    ),
];
