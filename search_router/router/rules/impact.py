"""How questions about dependants are worded: who calls it, where is it used, what breaks if it changes."""

from __future__ import annotations

from search_router.router.rules.rule import ANY_FORM, AUXILIARY, BASE, GERUND, PLACES, STILL, THING, Rule, rule

IMPACT: tuple[Rule, ...] = (
    rule(
        "cross-repo-impact.subject",
        850,
        rf" (?:who|what|which|whose|whatever|whoever|anyone|anything|anybody|everyone|everything|nothing|someone|something)"
        rf"(?: (?!{AUXILIARY} )\S+){{0,4}}? {STILL}(?:that |which )?{STILL}(?:use_b|reach_b) ",
        unless=r" from the (?:env|environment) | the (?:text|string|literal|phrase|substring) _| reach_b "
        r"(?!(?:\S+ ){0,3}?(?:_|directly|it |from ))",
    ),
    rule(
        "cross-repo-impact.being",
        850,
        r" (?:who|what|which(?: \S+){1,3}?|anything|anyone|anybody|any(?: \S+){1,3}?) (?:(?:is|"
        rf"are|else is) )?{STILL}(?:use_g|reach_g) ",
    ),
    rule(
        "cross-repo-impact.talks-to",
        700,
        rf" (?:who|what|which)(?: (?!{AUXILIARY} )\S+){{0,4}}? {STILL}(?:talks?|speaks?|connects?|links?|"
        r"points?|sends?|posts?|hooks?|plugs?|publish(?:es)?|writes?) (?:to|into|against|with) ",
    ),
    rule(
        "cross-repo-impact.affected",
        850,
        r" (?:what|which|who|anything|everything|anyone)(?: \S+){0,4}? (?:is|are|gets?|would be|will "
        r"be|be|becomes?) (?:affected|impacted|broken) "
        r"| (?:what|which) \S+s (?:are|get) (?:reach_p|use_p|affected|notified|impacted) by | what "
        r"(?:would|will|could|might) happen (?:to|with) ",
    ),
    rule(
        "cross-repo-impact.if-changes",
        900,
        r" if (?:\S+ ){1,6}?change_[bp] (?:.* )?(?:which|what|who|will|would) | (?:which|what|who|"
        r"will|would)(?: \S+){1,8}? if (?:\S+ ){1,6}?change_[bp] ",
    ),
    rule(
        "cross-repo-impact.plans",
        650,
        r" (?:about|going|planning|plan|intend) to change_b | (?:considering|thinking (?:about|of)|planning on|planning) change_g ",
    ),
    rule("cross-repo-impact.each-edge", 750, r" (?:every|all|any|each|other|remaining) (?:\S+ )?use_b (?:of|to|from) "),
    rule(
        "cross-repo-impact.many-callers",
        800,
        r" (?:usage|reference|caller) counts? | (?:callers?|consumers?|dependents?|importers?|call "
        r"?sites?|usages?) (?:does|do|are|is|left|still|remain|exist|there)\b",
    ),
    rule(
        "cross-repo-impact.paths",
        700,
        r" (?:what|which|all|every|any|paths?|list|show)(?: \S+){0,3}? (?:lead|leads|leading|flow|"
        rf"flows|end up|ends up|go|goes) (?:to|in|into|at|calling) (?:the )?{THING} ",
    ),
    rule(
        "cross-repo-impact.have-to",
        850,
        r" (?:have|need|needs|has|got) to (?:be )?(?:change_[bp]|touch|reach_b|make_[bp])(?: \S+){0,4}? "
        r"(?:if|when|after|once|before|because) | (?:has|have|needs) to be (?:change_p|adapted) ",
    ),
    rule(
        "cross-repo-impact.change-affects",
        900,
        rf" (?:{GERUND}|dropping|{BASE}) (?:\S+ ){{1,8}}?(?:break|breaks|affects?|impacts?|hurt|cause problems) ",
        unless=r" (?:why|how) (?:does|do|did|is|are) ",
    ),
    rule(
        "cross-repo-impact.how-used",
        900,
        r" how (?:is|are|do|does)(?: \S+){1,6}? (?:use_p|use_b) (?:across|throughout|in other|by other|by the other|elsewhere) ",
    ),
    rule("cross-repo-impact.reachable", 700, r" reachable (?:from|by|via) | callees of "),
    rule("cross-repo-impact.any", 750, rf" (?:any|other)(?: \S+){{1,3}}? {STILL}use_b ", unless=r" any way to "),
    rule(
        "cross-repo-impact.callers",
        900,
        r" (?:callers?|call ?sites?|use_b sites?|use sites?|dependents?|dependants?|importers?|usages?|"
        r"invocations?|instantiations?|reverse dependenc(?:y|ies)"
        r"|inbound \S+|incoming use_b|users|referrers|fan-in)(?: of| to| for| in| across) | fan-in "
        r"| find (?:all )?(?:use_b|usages?) | who all "
        r"| (?:call|use_b) (?:graph|hierarchy|tree|chains?|paths?|sites?) ",
        unless=r" (?:example|docs|documentation) ",
    ),
    rule(
        "cross-repo-impact.edges",
        650,
        r" (?:consumers?|subscribers?|clients?|listeners?|use_b|downstream) (?:of|to|from|for) (?:\S+ "
        rf"){{0,2}}?{THING} | all (?:\S+ )?(?:consumers|subscribers|clients|use_b) (?:of|to) ",
    ),
    rule(
        "cross-repo-impact.downstream",
        800,
        r" downstream (?:\S+ )?(?:consumers?|services?|users?|dependents?|callers?|projects?|repos\w*|"
        r"code|effects?|impact|clients?|teams?)"
        r"| blast radius | (?:ripple|knock-on|cascading) effects? | impact analysis | reverse dependenc(?:y|ies) | consumers of ",
        unless=r" how (?:is|are|do|does) ",
    ),
    rule("cross-repo-impact.where-used", 800, r" where(?: \S+){1,9}? (?:use_p|use_g) ", unless=r" use_p (?:to|for) "),
    rule("cross-repo-impact.where-we-use", 500, r" where(?: else)? (?:do|does) (?:\S+ ){1,2}?use_b ", unless=r" use_b (?:out|back) "),
    rule(
        "cross-repo-impact.used-by",
        700,
        r" use_p (?:by|anywhere|elsewhere|across|outside|in (?:other|any|which|all|more)|from) |\A "
        rf"(?:is|are) (?:\S+ ){{1,6}}?{STILL}use_p "
        r"| by (?:whom|who|what|which(?: \S+){1,2}) (?:is|are|gets?) (?:\S+ ){0,6}?use_p ",
        unless=r"\A (?:what|which)(?: \S+){1,3} (?:is|are) use_p | how (?:is|are|do|does) ",
    ),
    rule(
        "cross-repo-impact.breaks",
        950,
        r" (?:breaks?|affected|impacted|affects?|impacts?|stop (?:working|compiling)|fails?|fail to "
        r"compile|go wrong|needs? (?:to be )?(?:change_\w|to change_b))"
        rf"(?: \S+){{0,6}}? (?:if|when|by|after|once|were|should)(?: \S+){{0,7}}? (?:{ANY_FORM}|stop|"
        r"make|making|dropping|upgrade|removal|migration) ",
        unless=r" (?:why|how) (?:does|do|is|are) ",
    ),
    rule(
        "cross-repo-impact.if-i",
        750,
        rf" if (?:i|we|you|someone|one) (?:\S+ ){{0,3}}?(?:{ANY_FORM}|stop|make|made|break|turn) | "
        r"(?:i want|i would like|we want|before|before i) (?:to )?(?:change_b|change_g|reach_b) ",
        unless=r" (?:how|why) (?:does|do|is|are|would) | happened ",
    ),
    rule(
        "cross-repo-impact.impact-of",
        900,
        r" (?:impact|effects?|consequences?|ramifications?|implications?|fallout|repercussions?|side "
        rf"effects?|risks?) (?:of|if|from) (?:\S+ ){{0,3}}?(?:{ANY_FORM}|making|removal|upgrade|migration) "
        r"| affected by | (?:what|which|anything|anybody|who)(?: \S+){0,3}? (?:break|breaks) (?:if|when|once|after|because) ",
    ),
    rule(
        "cross-repo-impact.safe",
        850,
        r" (?:safe|safely|ok|okay|possible) (?:to )?(?:change_b|get rid|remove) | can (?:i|we) (?:\S+ly |just )?(?:change_b|get rid) ",
        unless=" how can ",
    ),
    rule(
        "cross-repo-impact.places",
        800,
        rf" {PLACES}(?: in \S+(?: \S+)?)?(?: (?:that|which|where|who))?(?: \S+ly)?(?: we| are| is| still| i){{0,2}} (?:use_b|use_g) ",
        unless=r" (?:how|why) (?:do|does|can|should|is|are|to) | example | (?:class|function|method|module|"
        r"file) (?:that|which) (?:use_b) (?!(?:the )?_)",
    ),
    rule(
        "cross-repo-impact.code-using",
        600,
        rf" (?:use_b|use_g) (?:\S+ )?{THING} ",
        also=r" (?:code|that|which|everything|everyone|all|trace|show|list|find|still) ",
        unless=r" (?:how|when|why|example|examples|should) ",
    ),
    rule(
        "cross-repo-impact.trace",
        600,
        r" trace (?:\S+ ){0,6}?(?:use_[bpg]|ends up|callers|paths? into|flows? to|goes) | (?:used|"
        r"use_p|references|use_b) (?:anywhere|elsewhere) ",
    ),
    rule(
        "cross-repo-impact.across",
        300,
        r" (?:across|throughout) (?:\S+ )?(?:repos|repositories|projects|services|packages|codebase|"
        r"monorepo|teams|modules|org\w*|workspace) ",
    ),
    rule("cross-repo-impact.unused", 550, r" (?:unused|dead code|orphaned|nobody use_b|no longer use_p|not use_p|never use_p) "),
    rule("cross-repo-impact.dependencies", 550, r" dependenc(?:y|ies) (?:of|on|graph) | what (?:all )?(?:does|do) \S+ use_b "),
    rule(
        "cross-repo-impact.callees",
        900,
        r"(?i) (?:what|which)(?: \S+){0,3}? (?:does|do|did) (?:\S+ ){1,4}?(?:calls?|invokes?|depends? on|rel(?:y|ies) on)[?. ]"
        r"|(?i: (?:functions?|methods?|what|which) (?:is|are|gets?) (?:called|invoked) (?:by|from|in|inside|within) )",
        "text",
        unless=r"(?i) (?:when|if|after|before|why|how) ",
    ),
    rule("cross-repo-impact.code-into", 550, r" code (?:that|which) use_b (?:into|from|on) "),
)
