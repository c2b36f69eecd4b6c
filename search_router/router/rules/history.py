"""How questions about the past are worded: when, who, why it was changed, which commit."""

from __future__ import annotations

from search_router.router.rules.rule import ANY_FORM, BASE, GERUND, PAST, RECORDS, Rule, rule

HISTORY: tuple[Rule, ...] = (
    rule("history.when", 850, r" when (?:did|was|were|has|have|had) "),
    rule(
        "history.when-was",
        800,
        rf" when(?: \S+){{1,8}}? (?:was|were|got|first|last|originally|landed|appeared|{PAST}) ",
        unless=r" (?:happens?|happen|how|why|behaves?|fails?|raised|returns?|breaks?) ",
    ),
    rule("history.since-when", 850, r" (?:since when|how long ago|how (?:old|recent|recently) |how long (?:has|have|had)) ?"),
    rule(
        "history.which-release",
        850,
        r" (?:in|at|by|since|with|as of) (?:which|what) (?:\S+ )?(?:release|version|commit|pr|revision|"
        r"tag|sprint|patch)s? | which (?:release|version) (?:of \S+ )?(?:first |last )?" + ANY_FORM,
    ),
    rule(
        "history.which-commit", 850, rf" (?:which|what|whose|first|last|latest|recent|initial|original|offending|bad) (?:\S+ )?{RECORDS} "
    ),
    rule(
        "history.commit-that",
        750,
        rf" {RECORDS} (?:that|which|where|when|reach_g|since|by|between|messages? (?:of|for|about|that|"
        rf"saying|mentioning|with)|history|logs?|hash|sha|mentioning|behind|{PAST}|{GERUND}) "
        rf"| (?:pr|pull request|merge request) (?:for|behind|about|on) | (?:all|list|show|any|find)(?: \S+){{0,2}}? commits ",
    ),
    rule(
        "history.git",
        850,
        r" git (?:log|blame|history|bisect|show|diff|annotate|commits?) | blame (?:for|on|of|_path_|"
        r"_id_) | bisect ",
    ),
    rule(
        "history.history-of",
        850,
        r" (?:change_b|commit|git|edit|revision|version|release) (?:history|log) | history (?:of|for|behind) "
        r"| (?:evolution|timeline|genesis|provenance) of | (?:log|blame) (?:for|of) (?:_path_|_id_) ",
        unless=r" (?:how|where) (?:is|are|do|does) ",
    ),
    rule("history.changelog", 750, r" (?:changelogs?|change_b log|release notes?|what is new|whats new) "),
    rule(
        "history.why-changed",
        900,
        rf" why (?:was|were|did|has|have|had)(?: \S+){{1,9}}? {ANY_FORM} | why (?:was|were)(?: \S+){{1,6}}? split ",
    ),
    rule(
        "history.why-did-they",
        850,
        r" why (?:\S+ ){0,3}?(?:did|have|had) (?:we|they|you|he|she|someone|somebody|anyone|people|"
        r"the (?:team|author|authors|devs?|developers?)) ",
    ),
    rule("history.why-no-longer", 900, r" why (?:is|are|do|does|can|did)(?: \S+){1,8}? (?:no longer|any ?more) "),
    rule("history.once", 600, r" (?:no longer|any ?more|use_p to (?:be|have|exist|live|work|do|support|return)) "),
    rule("history.past-question", 500, r"\A (?:was|were|did) (?!i )"),
    rule("history.how-was", 700, r" how (?:was|were|did) (?!i |my )"),
    rule("history.what-was", 550, r" what (?:was|were|did) (?!i |my )"),
    rule("history.who-past", 800, r" who (?:\S+ly )?(?!use_p|need|embed|feed)\w+(?:ed|ew) "),
    rule("history.record-in-which", 800, rf" {RECORDS} (?:in which|where|when|number|with which) "),
    rule("history.did-use-to", 700, r" did(?: \S+){1,8}? use_b to "),
    rule("history.how-often", 800, r" how (?:many times|often|frequently) (?:has|have|had|did|was|were|do people) "),
    rule(
        "history.attempts",
        750,
        r" prior art | (?:earlier|previous|past|prior|failed|abandoned) (?:\S+ )?(?:attempts?|tries|"
        r"efforts?|experiments?|discussions?) ",
    ),
    rule("history.origin", 800, r" (?:origins?|provenance) of (?:this|that|these|the (?:workaround|hack|idea|code|bug|fix|comment)) "),
    rule("history.deleted", 500, r" change_p (?:code|files?|functions?|class|classes|modules?|tests?) "),
    rule(
        "history.in-release",
        800,
        r" what (?:was|were|went|came|got|is|made it) (?:\S+ )?(?:in|into|with|part of) (?:the )?(?:\S+ )?(?:release|_ver_|version) ",
    ),
    rule(
        "history.which-change",
        850,
        rf" (?:which|what|the) (?:change_b|refactor\w*|rewrite|fix) (?:that |which )?(?:\S+ )?(?:\w+ed|{PAST}|made|broke) ",
    ),
    rule(
        "history.lately",
        400,
        r" (?:lately|recently|over the (?:past|last)|last (?:week|month|year)|yesterday|since (?:last|"
        r"_date_|_ver_|january|february|march|april|may|june|july|august|september|october|november|"
        r"december)) ",
        also=rf" (?:{ANY_FORM}|commits?|releases?|happen\w*|going on|failing|broken|slower) ",
    ),
    rule(
        "history.who-changed",
        900,
        rf" who(?: \S+ly| first| last| else| has| had| have| was| most recently){{0,2}} (?:{PAST}|came "
        r"up with|did|caused|made|put|set up|thought) "
        r"| (?:person|people|developers?|engineers?|devs?|teams?|contributors?) (?:that|who|which) "
        rf"(?:\S+ )?(?:{PAST}|use_p|\w+ed|wrote|made|did) ",
    ),
    rule(
        "history.author",
        800,
        r" (?:authors?|contributors?|maintainers?|committers?|reviewers?|ownership) (?:of|to|for|behind) "
        r"| who (?:is|was|are|were) (?:\S+ ){0,3}?"
        r"(?:author|contributor|maintainer|owner|committer|reviewer)s? | (?:which|what|list|name) "
        r"(?:the )?(?:authors?|developers?|contributors?|engineers?|committers?) "
        rf"| (?:most|many|number of) commits | who (?:is|was) behind | by whom (?:\S+ ){{0,6}}?{PAST} | {PAST} by whom ",
    ),
    rule(
        "history.what-changed",
        800,
        r" (?:what|anything|something|everything|(?:what|which) \S+(?: in \S+)?)(?: \S+ly| all| else|"
        rf" has| have| was| were| got| been| just){{0,3}} {PAST} "
        rf"| (?:what|which)(?: \S+){{0,3}}? (?:did|have|has) (?!to )(?:(?!have )\S+ ){{1,4}}?(?:{ANY_FORM}) ",
    ),
    rule(
        "history.how-changed",
        850,
        rf" how (?:much )?(?:has|have|had)(?: \S+){{1,8}}? (?:{PAST}|progressed|grown) | how did(?: "
        rf"\S+){{1,8}}? (?:{BASE}|come about|end up|get here|become) "
        rf"| how (?:did|was|were)(?: \S+){{1,8}}? (?:before|previously|originally|back then|back in) ",
    ),
    rule(
        "history.regression",
        750,
        r" regress(?:ed|ion|ions)?(?: \S+){0,4} (?:since|after|between|from|make_p|when|with) ",
        unless=r" regression (?:tests?|suite|testing|models?) ",
    ),
    rule(
        "history.recent",
        800,
        rf" (?:recent|latest|last|newest|past|most recent)(?: \S+)? (?:{BASE}|edits?|modifications?|"
        r"refactoring|rewrite|commits?|fix(?:es)?|activity|work)"
        r"(?: made)? (?:to|in|on|of|by|for|around|from|\.) | (?:recent|latest|last) change_b ",
    ),
    rule("history.last-touched", 700, rf" (?:last|recently|previously|originally|first|initially|just) {PAST} "),
    rule(
        "history.time",
        400,
        r" (?:since (?:_ver_|_date_|last|the)|last (?:week|month|year|quarter|sprint|release|summer|"
        r"spring|winter)|yesterday|(?:this|past) (?:week|month|year|quarter)|"
        r"(?:in|before|after|around|during) _date_|over (?:time|the years|the last)|lately|recently|"
        r"ago|between _(?:ver|date)_ and _|from _ver_ to _ver_|"
        r"(?:before|after) _ver_|compared to (?:main|master|_ver_|the (?:previous|last))|so far) ",
        unless=r" (?:migration|upgrade|migrate|upgrading) guide ",
    ),
    rule("history.was-ever", 700, rf"\A (?:was|were|did|has|have)(?: \S+){{1,8}}? (?:ever|always|originally|previously|once|{ANY_FORM}) "),
    rule("history.happened", 850, r" (?:what(?: ever)?|whatever) (?:has |have )?happened (?:to|with) | what became of "),
    rule(
        "history.reason",
        850,
        r" (?:reasons?|rationale|motivations?|motivated|justification|story|discussion|decision|argument)(?: "
        r"\S+)? (?:for|behind|to|of|that led to)(?: \S+){0,3}?"
        rf" (?:{GERUND}|{BASE}|move|change_b|removal|migration|decision|rewrite|split) | reasons? (?:why "
        rf"|that )?(?:\S+ ){{1,7}}?{PAST} | what (?:motivated|prompted|drove|led to|caused us to) ",
    ),
    rule("history.revert", 600, r" reverts? (?:of|commit|pr|that) | (?:was|were|been|got) (?:reverted|rolled back) ", "naming"),
    rule(
        "history.diff",
        800,
        r" (?:diff|difference|differences|change_b|delta|changes)(?: \S+){0,2} (?:between|from|since)(?: "
        r"\S+){0,5}? (?:releases?|versions?|commits?|branches|tags|_ver_|_date_|main|master) ",
    ),
    rule(
        "history.old",
        500,
        r" (?:previous|old|original|earlier|prior|former|first) (?:\S+ )?(?:implementation|version|"
        r"behaviou?r|design|approach)(?: of| before| look| \.) "
        r"| (?:before|after|prior to|predates?) (?:the |our )(?:\S+ )?(?:change_b|rewrite|refactor\w*|"
        r"migration|move|redesign|split|switch|removal) ",
    ),
    rule(
        "history.past-in",
        600,
        rf" {PAST} (?:in|at|by|on|around|before|after|during|since) (?:_ver_|_date_|commit|pr|which|what|the last|release) ",
    ),
    rule("history.versions-of", 700, r" (?:earlier|older|previous|prior|past|old) versions? of "),
    rule("history.release-which", 750, r" (?:releases?|versions?) (?:in which|where|when|that) "),
)
