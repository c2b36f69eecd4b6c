"""How questions of understanding are worded, and questions that documentation answers."""

from __future__ import annotations

from search_router.router.rules.rule import OURS, Rule, named, rule

CONCEPTUAL: tuple[Rule, ...] = (
    rule(
        "conceptual.how",
        550,
        r" how (?:do|does|is|are|will|would|exactly|it|the|this|that|these|we|(?!was )\S+s) ",
        unless=r" how (?:do|would) (?:i|you|one) | how old | how does one ",
    ),
    rule("conceptual.how-i", 300, r" how (?:do|can|should|would) (?:i|you) "),
    rule("conceptual.why", 650, r" why (?:do|does|is|are|would|will|must|should|can|not|the|we|this|isn't|doesn't) "),
    rule("conceptual.why-was", 300, r" why (?:was|did|were) "),
    rule("conceptual.where", 350, r" where (?:is|are|do|does|in|can|could|should|the|we|exactly) "),
    rule(
        "conceptual.explain",
        600,
        r" (?:explain|explanation of|describe|understand|understanding|overview|summari[sz]e|walk "
        r"(?:me|us)? ?through|architecture|architectural|(?:idea|thinking|concept) behind|responsible "
        r"for|in charge of|"
        r"purpose of|difference between|relationship between|interaction between|internals of|under "
        r"the hood|high[- ]level|end[- ]to[- ]end|big picture|life ?cycle|mental model|how it works) ",
        unless=r" who is ",
    ),
    rule(
        "conceptual.noun",
        350,
        r" (?:design|mechanism|logic|strategy|approach|rationale|concept|workflow|pipeline|flow|semantics|"
        r"invariants?|trade-?offs?|policy|algorithm|model|pattern|handling) ",
    ),
    rule("conceptual.happens", 600, r" (?:what (?:happens|will happen|would happen)|what is going on|goes on inside) "),
    rule(
        "conceptual.what-does",
        500,
        r" what (?:does|do)(?: \S+){1,8}? (?:do|mean|represent|handle|control|happen) ",
        unless=r" (?:docs?|documentation|readme|manual|guide|handbook) (?:says?|tells?|recommends?|states?) ",
    ),
    rule("conceptual.what-acts", 400, r" what (?!is |does |was |has |use_b |breaks |use_)(?:\w+[a-rt-z]s|reach_b) (?!_)"),
    rule("conceptual.what-is", 250, r" what (?:is|are) "),
    rule(
        "conceptual.agent",
        500,
        r" (?:who|what|which(?: \S+){1,4}?)(?: \S+ly)? (?:owns?|holds?|manages?|decides?|handles?|"
        r"controls?|determines?|performs?|validates?|checks?|computes?|creates?|closes?|starts?|stops?|"
        r"guarantees?|ensures?|prevents?|protects?|limits?|drives?|keeps?|makes?|cleans?|enforces?|"
        r"coordinates?|schedules?|stores?|generates?|turns?|converts?|resolves?|tells?|chooses|picks) ",
    ),
    rule(
        "conceptual.code-that",
        400,
        r" (?:code|logic|component|implementation|part|layer|machinery) (?:that|which|for|responsible|"
        r"to|of|where|doing) | is there (?:any |some |a )?(?:code|logic|place) ",
    ),
)

_LIBRARY = r" (?:_lib_|_common_) "
DOCS: tuple[Rule, ...] = (
    rule(
        "docs.document",
        850,
        r" (?:docs|documentation|readmes?|api references?|reference (?:docs|manual|documentation|guide)|"
        r"(?:user|developer|admin|style|setup|deployment|configuration|integration|troubleshooting|"
        r"upgrade|migration|"
        r"installation|install|contributing|contribution|getting started) (?:guides?|instructions|"
        r"steps|notes|manual)|handbook|tutorials?|man ?pages?|cookbook|cheat ?sheets?|getting started|"
        r"quick ?start|"
        r"(?:design|policy|requirements|architecture|onboarding|decision) (?:docs?|documents?)|doc "
        r"(?:for|on|of|about)|runbooks?|playbooks?|adrs?|decision records?|rfcs?|guidelines?|(?:usage|"
        r"build|release|running) instructions|instructions (?:on how|for (?:running|building|installing|"
        r"using|setting))|(?:configuration|command|cli|config|\S+) reference (?:for|of|page)|wiki|"
        r"faqs?|specification|spec (?:of|for)|white ?paper|guide (?:to|for|on)|documented|(?:read|"
        r"learn|find (?:information|info|help|guidance)) (?:more )?(?:about|on)|manual (?:page|for|"
        r"section)) ",
        "naming",
        unless=r" (?:docs|documentation) (?:folder|directory|dir|tree) | (?:docs|documentation|readme)(?: "
        r"\S+)? (?:generated|built|published|rendered|deployed|indexed|hosted|parsed) "
        r"| (?:generate|generates|build|builds|publish|render|renders|deploy|index|indexes|parse|parses) "
        r"(?:the |our )?(?:docs|documentation) "
        r"| (?:docs|documentation) (?:build|pipeline|generator|indexer|search|expert|adapter) ",
    ),
    rule(
        "docs.decision",
        750,
        r" (?:decisions?|decided|agreed|agreement|post ?-?mortems?|incident reports?|meeting notes|minutes) (?:about|on|regarding|for|"
        r"against|to|of|with) | (?:we|team) (?:decide|decided|agree|agreed) ",
        "naming",
        unless=r" why (?:was|were|did|has) | (?:decision|decisions) trees? ",
    ),
    rule(
        "docs.library-how",
        800,
        r" how (?:to|(?:do|does|can|could|should|would) (?:i|you|one|someone|people|we)) (?:\S+ )*?(?:_lib_|"
        rf"_common_) |{_LIBRARY}(?:.* )?how to ",
        "naming",
        unless=OURS,
    ),
    rule(
        "docs.library-facts",
        800,
        r" (?:api|options?|parameters?|params|arguments?|args|kwargs|syntax|usage|examples?|sample|"
        r"defaults?|configuration|supports?|signature|reference|decorators?|versions?|_ver_|deprecated|"
        r"deprecation|deprecations|breaking|compatib\w+|best practices?|recommended|(?:correct|right|"
        r"proper|best|idiomatic) way|way to|equivalent|alternative|accepts?|features?|provides?|allows?|"
        r"official|settings|does (?:_lib_|_common_)) ",
        "naming",
        also=_LIBRARY,
        unless=OURS,
    ),
    rule(
        "docs.command-options",
        650,
        r" (?:options|flags|arguments|subcommands|parameters|switches) (?:of|for|does|to|are) (?:\S+ "
        r"){0,4}?(?:command|cli|tool|script|subcommand|binary|action) ",
        "naming",
        unless=OURS,
    ),
    rule(
        "docs.in-library",
        500,
        r" (?:what|which|does|do|is|are|can|could|should)(?: \S+)*? (?:in|of|with|by|from|using) (?:the )?(?:_lib_|_common_) ",
        "naming",
        unless=OURS,
    ),
    rule("docs.library-topic", 450, r" _lib_ ", "naming", unless=OURS),
    named("docs.library-start", 300, r"\A (?:_lib_|_common_) \S+ ", "naming"),
    rule(
        "docs.deprecated-in",
        700,
        r" (?:deprecated|removed|changed|supported) in (?:_lib_|_common_) (?:_ver_|_num_)?",
        "naming",
        unless=" why ",
    ),
    rule(
        "docs.how-to",
        420,
        r" how (?:to|(?:do|can|should|would|could) (?:i|you|one)) ",
        "naming",
        unless=r" (?:our|this repo|this project|this codebase|here) ",
    ),
    rule(
        "docs.how-to-use",
        600,
        r" how (?:to|(?:do|can|should|would) (?:i|you|one)) (?:use|install|configure|set ?up|contribute|"
        r"upgrade|get started|enable|run) ",
        "naming",
    ),
    rule(
        "docs.example",
        500,
        r" (?:examples?|sample|snippet) (?:of|for|usage|code|using|showing) | usage (?:example|of)s? "
        r"(?!_)",
        "naming",
    ),
    rule("docs.install", 450, r" (?:install|installation|installing|prerequisites|setup instructions|command reference) ", "naming"),
)
