"""What is named in a question: symbols with their kinds and members, and texts to be found as they stand."""

from __future__ import annotations

from search_router.router.rules.rule import KINDS, MEMBERS, NAME, THING, Rule, named, rule

TYPED: tuple[Rule, ...] = (
    named(
        "typed-symbol.bare",
        950,
        rf"\A(?= (?:\S+ )*_id_ ) (?:(?:the|a|in|of|for|on|{KINDS}|_path_|\.) )*(?:{NAME} )(?:(?:the|"
        rf"a|in|of|for|on|{KINDS}|_path_|\.|{NAME}) )*\Z",
    ),
    named("typed-symbol.name", 350, r" _id_ "),
    named("typed-symbol.constant", 200, r" _const_ "),
    named(
        "typed-symbol.define",
        600,
        r" (?:defined|declared|definitions?|declarations?|declares?|defines?|signatures?|go to|goto|"
        rf"jump to) (?:.* )?{NAME} | {NAME} (?:.* )?(?:defined|declared|definition|declaration|signature|"
        r"live|lives) ",
    ),
    rule(
        "typed-symbol.hierarchy",
        800,
        r" (?:implementations?|implementors?|implementers|sub-?class(?:es|ing)?|super-?class(?:es)?|"
        r"(?:base|parent|derived|child) class(?:es)?|inherit from|inherits?|inheriting|overrid(?:es?|"
        r"den|ing)|"
        rf"extends?|extending|implements?|implementing|hierarchy|conforms? to|derives? from|satisf(?:y|ies))(?: \S+){{0,4}}? {NAME} "
        rf"| {NAME} (?:\S+ )?(?:implementations?|implementors|subclass(?:es)?|hierarchy|implements|extends|inherits) ",
        unless=r" (?:how|why|when) (?:do|does|is|are|to|did|was|can|should)",
    ),
    rule(
        "typed-symbol.which-types",
        700,
        r" (?:which|what|all|list|find|show)(?: \S+){0,3}? (?:class(?:es)?|types?|structs?|models?) "
        r"(?:that |which )?(?:implement|extend|inherit|override|subclass|conform) ",
    ),
    named(
        "typed-symbol.members",
        600,
        rf" {MEMBERS}(?: \S+){{0,5}}? (?:of|on|in|for|to|by|from|does|do|can|is|has|have)(?: \S+){{0,4}}? "
        rf"{NAME} | {NAME} (?:\S+ )?{MEMBERS} ",
    ),
    named(
        "typed-symbol.kind",
        500,
        rf" {KINDS} (?:called |named )?{NAME} | {NAME} (?:\S+ ){{0,2}}?{KINDS} ",
    ),
    # one word in capitals is a name when its definition is what is asked for: `definition of Settings`
    rule(
        "typed-symbol.capitalised",
        700,
        r"\b(?:definition|declaration|implementation|signature) of (?:the )?(?:(?:class|type|struct|function|constant) )?"
        r"[A-Z][A-Za-z]{2,}[?. ]*\Z",
        "text",
    ),
    named(
        "typed-symbol.find",
        350,
        r" (?:find|show|locate|open|see|view|get|give|where is|where are|where does|look up|lookup|"
        r"source of|code of|body of|code for|source for|looking for)(?: me)?(?: the)?(?: \S+){0,2}? "
        r"_id_ ",
    ),
    named(
        "typed-symbol.contract",
        600,
        r" (?:returns?|accepts?|takes?|raises?|throws?|requires?|use_b|exports?|exported|exposes?|"
        rf"yields?) (?:\S+ )?{NAME} | {NAME} (?:return|accept|take|raise|throw|have|expose|yield|use_b)s? ",
        also=r" (?:what|which|does|do|whether) ",
        unless=r" (?:how|who|why|when) ",
    ),
    rule(
        "typed-symbol.returns",
        700,
        rf" what (?:does|do|can|should|will)(?: \S+){{0,4}}? {NAME} (?:\S+ )?(?:returns?|accept|take|"
        r"raise|throw|yield|expose|expect|need) "
        rf"| (?:what|which) (?:\S+ )?(?:{KINDS}s?|class(?:es)?|{MEMBERS}) (?:does|do|is|are|can|has|have)(?: \S+){{0,3}}? {NAME} ",
    ),
    rule(
        "typed-symbol.requires",
        700,
        r"(?i) what (?:does|do|can|should|will)(?: \S+){1,6}? (?:requires?|includes?|consumes?|wraps?|constructs?|uses?) ",
        "text",
        also=r"[A-Za-z0-9]_[A-Za-z]|[a-z][A-Z]|\w\.\w|\(\)",
    ),
    named("typed-symbol.kind-alone", 300, rf" {KINDS} (?:called|named|that) | (?:return type|type signature|type hint|type annotation) "),
)

IDENTIFIER: tuple[Rule, ...] = (
    named("identifier.quoted", 600, r" _q_ "),
    named("identifier.regex", 900, r" _r_ "),
    named("identifier.literal", 550, r" (?:_url_|_lit_) "),
    named("identifier.flag", 700, r" _flag_ "),
    named("identifier.constant", 300, r" _const_ "),
    named(
        "identifier.constant-alone",
        950,
        r"\A (?:(?:the|env|environment|variable|constant|_path_|in|\.) )*_const_ (?:(?:env|environment|"
        r"variable|constant|_path_|in|\.) )*\Z",
    ),
    named(
        "identifier.text",
        400,
        r" (?:strings?|literals?|texts?|phrases?|substrings?|messages?|sentence|comments?|wording|"
        rf"label|lines?|words?|print|prints|log|logs|output|warning|snippet) (?:\S+ ){{0,3}}?{THING} ",
    ),
    rule(
        "identifier.search",
        600,
        r" (?:grep|rg|ripgrep|search (?:the |our |all |in )?(?:\S+ )?for|substrings?|placeholder text|"
        r"look for the literal|exact match(?:es)?|exact (?:text|string|phrase)|verbatim|literally|"
        r"occurr?ences?(?: of)?|mentions?(?: of)?|(?<!next )(?<!same )(?<!last )lines? (?:with|matching|containing)|"
        r"(?:the|all|any|every|each|which|what|find|show|list|get|return|print|me|of) lines? that|"
        r"containing|contains?|hits for|hard-?coded|hard coded|magic (?:number|string|constant|value)) ",
        unless=r" how (?:does|do|is|are) | (?:commit|commits|pr) that ",
    ),
    named(
        "identifier.environment",
        700,
        rf" (?:env|environment)(?: vars?| variables?)? (?:\S+ ){{0,6}}?{NAME} | {NAME} (?:\S+ ){{0,3}}?(?:env|environment) ",
    ),
    named(
        "identifier.setting",
        550,
        r" (?:constants?|(?:error|exit|status|http) (?:status )?code|http status|status|(?:feature "
        r")?(?:flag|toggle)|config(?:uration)? (?:key|option|setting|value|entry|file)|settings?|cookie(?: "
        r"name)?|header|css class|i18n key|"
        r"translation key|column|table|topic|queue name|metric(?: name)?|event name|route|role|permission|"
        r"option|key|field name|host ?name|port|selector|test id|secret|label) "
        r"(?:called |named |is |name |key |with |value )?(?:_const_|_id_|_lit_|_q_|_flag_|_num_|_path_|_url_) ",
    ),
    named(
        "identifier.setting-after",
        450,
        r" (?:_const_|_id_|_lit_|_flag_|_q_) (?:flag|option|switch|env|environment|config|setting|"
        r"column|cookie|header|metric|constant|key|error code|log line|log message|table|topic) ",
    ),
    named(
        "identifier.constant-event",
        500,
        r" _const_ (?:\S+ )?(?:thrown|raised|emitted|returned|set|reach_[bp]|logged|printed|checked|"
        r"appear|appears|come from|comes from) ",
    ),
    named(
        "identifier.emitted",
        300,
        r" _q_ (?:\S+ ){0,3}?(?:emitted|printed|logged|raised|thrown|output|shown|displayed|set|written|"
        r"come from|comes from|reach_p|appears?) |"
        r" (?:prints?|logs?|emits?|raises?|throws?|outputs?|shows?|displays?|says|saying) _q_ ",
    ),
    named(
        "identifier.todo",
        800,
        r" (?:TODO|FIXME|HACK|XXX|NOQA|nosec)s?\b| (?:fixmes?|todos|(?:the|a|any|every|each) todo|"
        r"todo (?:about|for|comments?|left|in|regarding|on|notes?)) ",
        "text",
    ),
    rule(
        "identifier.error-text",
        800,
        r"\A (?:[\w.]*(?:Error|Exception|Panic|Warning|Fault)|(?i:panic|error|fatal|warning|traceback)|"
        r"E\d+)(?:\[\w+\])?: ?\S|\w(?:Error|Exception): \w",
        "text",
    ),
    rule(
        "identifier.files",
        800,
        r" files? (?:named|called|matching|with (?:the )?(?:extension|name|suffix)|ending|whose name) | (?:filename|file name) ",
        unless=r" (?:as|from|into|to|out of) (?:a|an|each|every) (?:filename|file name) ",
    ),
    rule(
        "identifier.the-text",
        800,
        r" (?:strings?|texts?|literals?|phrases?|substrings?|wording) (?:literal )?(?:_q_|_lit_|_r_|"
        r"_num_) | the (?:string|text|literal|phrase|substring|word) (?:_id_|_const_) ",
        unless=r" (?:who|when|why|commits?|prs?|pull request) ",
    ),
    named(
        "identifier.setting-word",
        500,
        r" (?:flag|toggle|switch|bucket|host ?name|host|queue|topic|cookie|header|option|key|label|"
        r"secret|metric|event) (?:name |named |called )?\w+(?:-\w+)+ ",
    ),
    rule(
        "identifier.which-file",
        750,
        r" (?:which|what|list|find|all)(?: \S+)? (?:files?|scripts?|configs?|yamls?|manifests?|migrations?|"
        r"templates?|lines?) (?:that )?(?:sets?|contains?|contain|mentions?|mention|has|have|holds?|"
        r"defines?) ",
        unless=r" (?:definitions?|declarations?|class|method|function) (?:of|for|_|that) ",
    ),
    named("identifier.remarks", 450, r" _(?:id|lit|q)_ (?:statements?|comments?|occurrences?|annotations?|lines?) "),
    named("identifier.path", 400, r" _path_ ", unless=r"_id_"),
    named("identifier.number", 350, r" (?:code|number|value|constant|port|id|line|status) _num_ "),
)
