//! The phrases in other languages, by translation.

use super::{
    Kind::{Conceal, Credentials, Override},
    Phrase,
};

/// See the module.
pub(super) const PHRASES: &[Phrase] = &[
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
