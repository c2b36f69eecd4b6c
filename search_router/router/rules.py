"""The table of classification rules: how people and agents word each kind of question.

A rule is a pattern over one surface of the question (see `wording.Surfaces`), with what must also hold and what must not. `asks` marks
wording that says what is wanted; the other rules only recognise what is named, and count half once something has been asked.
Patterns start with a space, because a surface does: one literal character makes the search about five times faster than `\\b`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from search_router.schema import Intent

Surface = Literal["wording", "naming", "text"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: fires when `pattern` is found, `also` too, and `unless` is not. `weight` is per mille."""

    id: str
    intent: Intent
    weight: int
    pattern: re.Pattern[str]
    surface: Surface = "wording"
    asks: bool = False
    also: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None


# Words that patterns share. Verb classes (change_p, …) are explained in wording.py.
_PAST = r"(?:change_p|make_p)"
_BASE = r"(?:change_b|make_b)"
_GERUND = r"(?:change_g|make_g)"
_ANY = r"(?:change_[bpg]|make_[bpg])"
_NAME = r"(?:_id_|_const_)"
_THING = r"(?:_id_|_api_|_const_|_path_|_q_|_lit_)"
_AUX = r"(?:do|does|did|is|are|was|were|has|have|had|should|can|could|would|must|shall|may|we|i|you|they|the|how|why|where)"
_STILL = (
    r"(?:(?:else|still|also|currently|actually|directly|all|already|really|might|may|could|would|will|indirectly|transitively|today|now) )*"
)
_PLACES = (
    r"(?:places?|files?|modules?|functions?|methods?|classes|services?|repos?|repositor(?:y|ies)|packages?|tests?|components?|projects?|"
    r"spots|locations|clients?|apps?|applications?|endpoints?|jobs?|things?|pages?|scripts?|crates?|teams?|handlers?|lines|call ?sites)"
)
_KINDS = (
    r"(?:class|struct|interface|enum|trait|protocol|type|method|function|func|fn|constructor|component|macro|mixin|typedef|dataclass|"
    r"decorator|hook|alias|exception|record|property|abstract|async|symbol|def|fun|impl|var|const|static|public|module|definition|declaration|source)"
)
_MEMBERS = (
    r"(?:methods?|fields?|members?|attributes?|properties|property|props|constructors?|parameters?|params|arguments?|args|types?|"
    r"signatures?|getters?|setters?|variants?|overloads?|exceptions?|bounds|annotations?|defaults?|default values?|values?|keyword arguments)"
)
_RECORDS = r"(?:commits?|prs?|pull requests?|mrs?|merge requests?|patch(?:es)?|changesets?|revisions?)"
_OURS = re.compile(
    r" (?:our|ours|we|us|in here|here|this (?:repo|repository|codebase|code|project|app|application|service|module|package)|"
    r"(?:the|our) (?:codebase|code base|repo|repository)) | where (?:is|are|do|does|in|the) "
)


def _rule(
    id_: str,
    weight: int,
    pattern: str,
    surface: Surface = "wording",
    *,
    also: str = "",
    unless: str | re.Pattern[str] = "",
    asks: bool = True,
) -> Rule:
    prefix, _, _ = id_.partition(".")
    return Rule(
        id=id_,
        intent=Intent(prefix),
        weight=weight,
        pattern=re.compile(pattern),
        surface=surface,
        asks=asks,
        also=re.compile(also) if also else None,
        unless=re.compile(unless) if unless else None,
    )


def _named(id_: str, weight: int, pattern: str, surface: Surface = "wording", *, also: str = "", unless: str = "") -> Rule:
    return _rule(id_, weight, pattern, surface, also=also, unless=unless, asks=False)


HISTORY = (
    _rule("history.when", 850, r" when (?:did|was|were|has|have|had) "),
    _rule(
        "history.when-was",
        800,
        rf" when(?: \S+){{1,8}}? (?:was|were|got|first|last|originally|landed|appeared|{_PAST}) ",
        unless=r" (?:happens?|happen|how|why|behaves?|fails?|raised|returns?|breaks?) ",
    ),
    _rule("history.since-when", 850, r" (?:since when|how long ago|how (?:old|recent|recently) |how long (?:has|have|had)) ?"),
    _rule(
        "history.which-release",
        850,
        r" (?:in|at|by|since|with|as of) (?:which|what) (?:\S+ )?(?:release|version|commit|pr|revision|tag|sprint|patch)s? | which (?:release|version) (?:of \S+ )?(?:first |last )?"
        + _ANY,
    ),
    _rule(
        "history.which-commit", 850, rf" (?:which|what|whose|first|last|latest|recent|initial|original|offending|bad) (?:\S+ )?{_RECORDS} "
    ),
    _rule(
        "history.commit-that",
        750,
        rf" {_RECORDS} (?:that|which|where|when|reach_g|since|by|between|messages? (?:of|for|about|that|saying|mentioning|with)|history|logs?|hash|sha|mentioning|behind|{_PAST}|{_GERUND}) "
        rf"| (?:pr|pull request|merge request) (?:for|behind|about|on) | (?:all|list|show|any|find)(?: \S+){{0,2}}? commits ",
    ),
    _rule("history.git", 850, r" git (?:log|blame|history|bisect|show|diff|annotate|commits?) | blame (?:for|on|of|_path_|_id_) | bisect "),
    _rule(
        "history.history-of",
        850,
        r" (?:change_b|commit|git|edit|revision|version|release) (?:history|log) | history (?:of|for|behind) "
        r"| (?:evolution|timeline|genesis|provenance) of | (?:log|blame) (?:for|of) (?:_path_|_id_) ",
        unless=r" (?:how|where) (?:is|are|do|does) ",
    ),
    _rule("history.changelog", 750, r" (?:changelogs?|change_b log|release notes?|what is new|whats new) "),
    _rule(
        "history.why-changed", 900, rf" why (?:was|were|did|has|have|had)(?: \S+){{1,9}}? {_ANY} | why (?:was|were)(?: \S+){{1,6}}? split "
    ),
    _rule(
        "history.why-did-they",
        850,
        r" why (?:\S+ ){0,3}?(?:did|have|had) (?:we|they|you|he|she|someone|somebody|anyone|people|the (?:team|author|authors|devs?|developers?)) ",
    ),
    _rule("history.why-no-longer", 900, r" why (?:is|are|do|does|can|did)(?: \S+){1,8}? (?:no longer|any ?more) "),
    _rule("history.once", 600, r" (?:no longer|any ?more|use_p to (?:be|have|exist|live|work|do|support|return)) "),
    _rule("history.past-question", 500, r"\A (?:was|were|did) (?!i )"),
    _rule("history.how-was", 700, r" how (?:was|were|did) (?!i |my )"),
    _rule("history.what-was", 550, r" what (?:was|were|did) (?!i |my )"),
    _rule("history.who-past", 800, r" who (?:\S+ly )?(?!use_p|need|embed|feed)\w+(?:ed|ew) "),
    _rule("history.record-in-which", 800, rf" {_RECORDS} (?:in which|where|when|number|with which) "),
    _rule("history.did-use-to", 700, r" did(?: \S+){1,8}? use_b to "),
    _rule("history.how-often", 800, r" how (?:many times|often|frequently) (?:has|have|had|did|was|were|do people) "),
    _rule(
        "history.attempts",
        750,
        r" prior art | (?:earlier|previous|past|prior|failed|abandoned) (?:\S+ )?(?:attempts?|tries|efforts?|experiments?|discussions?) ",
    ),
    _rule("history.origin", 800, r" (?:origins?|provenance) of (?:this|that|these|the (?:workaround|hack|idea|code|bug|fix|comment)) "),
    _rule("history.deleted", 500, r" change_p (?:code|files?|functions?|class|classes|modules?|tests?) "),
    _rule(
        "history.in-release",
        800,
        r" what (?:was|were|went|came|got|is|made it) (?:\S+ )?(?:in|into|with|part of) (?:the )?(?:\S+ )?(?:release|_ver_|version) ",
    ),
    _rule(
        "history.which-change",
        850,
        rf" (?:which|what|the) (?:change_b|refactor\w*|rewrite|fix) (?:that |which )?(?:\S+ )?(?:\w+ed|{_PAST}|made|broke) ",
    ),
    _rule("history.started", 450, r" (?:started|stopped|began) (?:to )?(?:\w+ing|\w+_g) "),
    _rule(
        "history.lately",
        400,
        r" (?:lately|recently|over the (?:past|last)|last (?:week|month|year)|yesterday|since (?:last|_date_|_ver_|january|february|march|april|may|june|july|august|september|october|november|december)) ",
        also=rf" (?:{_ANY}|commits?|releases?|happen\w*|going on|failing|broken|slower) ",
    ),
    _rule(
        "history.who-changed",
        900,
        rf" who(?: \S+ly| first| last| else| has| had| have| was| most recently){{0,2}} (?:{_PAST}|came up with|did|caused|made|put|set up|thought) "
        rf"| (?:person|people|developers?|engineers?|devs?|teams?|contributors?) (?:that|who|which) (?:\S+ )?(?:{_PAST}|use_p|\w+ed|wrote|made|did) ",
    ),
    _rule(
        "history.author",
        800,
        r" (?:authors?|contributors?|maintainers?|committers?|reviewers?|ownership) (?:of|to|for|behind) | who (?:is|was|are|were) (?:\S+ ){0,3}?"
        rf"(?:author|contributor|maintainer|owner|committer|reviewer)s? | (?:which|what|list|name) (?:the )?(?:authors?|developers?|contributors?|engineers?|committers?) "
        rf"| (?:most|many|number of) commits | by whom (?:\S+ ){{0,6}}?{_PAST} | {_PAST} by whom ",
    ),
    _rule(
        "history.what-changed",
        800,
        rf" (?:what|anything|something|everything|(?:what|which) \S+(?: in \S+)?)(?: \S+ly| all| else| has| have| was| were| got| been| just){{0,3}} {_PAST} "
        rf"| (?:what|which)(?: \S+){{0,3}}? (?:did|have|has) (?!to )(?:(?!have )\S+ ){{1,4}}?(?:{_ANY}) ",
    ),
    _rule(
        "history.how-changed",
        850,
        rf" how (?:much )?(?:has|have|had)(?: \S+){{1,8}}? (?:{_PAST}|progressed|grown) | how did(?: \S+){{1,8}}? (?:{_BASE}|come about|end up|get here|become) "
        rf"| how (?:did|was|were)(?: \S+){{1,8}}? (?:before|previously|originally|back then|back in) ",
    ),
    _rule(
        "history.regression",
        750,
        r" regress(?:ed|ion|ions)?(?: \S+){0,4} (?:since|after|between|from|make_p|when|with) ",
        unless=r" regression (?:tests?|suite|testing|models?) ",
    ),
    _rule(
        "history.recent",
        800,
        rf" (?:recent|latest|last|newest|past|most recent)(?: \S+)? (?:{_BASE}|edits?|modifications?|refactoring|rewrite|commits?|fix(?:es)?|activity|work)"
        r"(?: made)? (?:to|in|on|of|by|for|around|from|\.) | (?:recent|latest|last) change_b ",
    ),
    _rule("history.last-touched", 700, rf" (?:last|recently|previously|originally|first|initially|just) {_PAST} "),
    _rule(
        "history.time",
        400,
        r" (?:since (?:_ver_|_date_|last|the)|last (?:week|month|year|quarter|sprint|release|summer|spring|winter)|yesterday|(?:this|past) (?:week|month|year|quarter)|"
        r"(?:in|before|after|around|during) _date_|over (?:time|the years|the last)|lately|recently|ago|between _(?:ver|date)_ and _|from _ver_ to _ver_|"
        r"(?:before|after) _ver_|compared to (?:main|master|_ver_|the (?:previous|last))|so far) ",
        unless=r" (?:migration|upgrade|migrate|upgrading) guide ",
    ),
    _rule("history.was-ever", 700, rf"\A (?:was|were|did|has|have)(?: \S+){{1,8}}? (?:ever|always|originally|previously|once|{_ANY}) "),
    _rule("history.happened", 850, r" (?:what(?: ever)?|whatever) (?:has |have )?happened (?:to|with) | what became of "),
    _rule(
        "history.reason",
        850,
        rf" (?:reasons?|rationale|motivations?|motivated|justification|story|discussion|decision|argument)(?: \S+)? (?:for|behind|to|of|that led to)(?: \S+){{0,3}}?"
        rf" (?:{_GERUND}|{_BASE}|move|change_b|removal|migration|decision|rewrite|split) | reasons? (?:why|that) (?:\S+ ){{1,8}}?{_ANY} | what (?:motivated|prompted|drove|led to|caused us to) ",
    ),
    _rule("history.revert", 600, r" reverts? (?:of|commit|pr|that) | (?:was|were|been|got) (?:reverted|rolled back) ", "naming"),
    _rule(
        "history.diff",
        800,
        r" (?:diff|difference|differences|change_b|delta|changes)(?: \S+){0,2} (?:between|from|since)(?: \S+){0,5}? (?:releases?|versions?|commits?|branches|tags|_ver_|_date_|main|master) ",
    ),
    _rule(
        "history.old",
        500,
        r" (?:previous|old|original|earlier|prior|former|first) (?:\S+ )?(?:implementation|version|behaviou?r|design|approach)(?: of| before| look| \.) "
        r"| (?:before|after|prior to|predates?) (?:the |our )(?:\S+ )?(?:change_b|rewrite|refactor\w*|migration|move|redesign|split|switch|removal) ",
    ),
    _rule(
        "history.past-in",
        600,
        rf" {_PAST} (?:in|at|by|on|around|before|after|during|since) (?:_ver_|_date_|commit|pr|which|what|the last|release) ",
    ),
)

IMPACT = (
    _rule(
        "cross-repo-impact.subject",
        850,
        rf" (?:who|what|which|whose|whatever|whoever|anyone|anything|anybody|everyone|everything|nothing|someone|something)"
        rf"(?: (?!{_AUX} )\S+){{0,4}}? {_STILL}(?:that |which )?{_STILL}(?:use_b|reach_b) ",
        unless=r" from the (?:env|environment) | the (?:text|string|literal|phrase|substring) _| reach_b (?!(?:\S+ ){0,3}?(?:_|directly|it |from ))",
    ),
    _rule(
        "cross-repo-impact.being",
        850,
        rf" (?:who|what|which(?: \S+){{1,3}}?|anything|anyone|anybody|any(?: \S+){{1,3}}?) (?:(?:is|are|else is) )?{_STILL}(?:use_g|reach_g) ",
    ),
    _rule(
        "cross-repo-impact.talks-to",
        700,
        rf" (?:who|what|which)(?: (?!{_AUX} )\S+){{0,4}}? {_STILL}(?:talks?|speaks?|connects?|links?|points?|sends?|posts?|hooks?|plugs?|publish(?:es)?|writes?) (?:to|into|against|with) ",
    ),
    _rule(
        "cross-repo-impact.affected",
        850,
        r" (?:what|which|who|anything|everything|anyone)(?: \S+){0,4}? (?:is|are|gets?|would be|will be|be|becomes?) (?:affected|impacted|broken) "
        r"| (?:what|which) \S+s (?:are|get) (?:reach_p|use_p|affected|notified|impacted) by | what (?:would|will|could|might) happen (?:to|with) ",
    ),
    _rule(
        "cross-repo-impact.if-changes",
        900,
        r" if (?:\S+ ){1,6}?change_[bp] (?:.* )?(?:which|what|who|will|would) | (?:which|what|who|will|would)(?: \S+){1,8}? if (?:\S+ ){1,6}?change_[bp] ",
    ),
    _rule(
        "cross-repo-impact.plans",
        650,
        r" (?:about|going|planning|plan|intend) to change_b | (?:considering|thinking (?:about|of)|planning on|planning) change_g ",
    ),
    _rule("cross-repo-impact.each-edge", 750, r" (?:every|all|any|each|other|remaining) (?:\S+ )?use_b (?:of|to|from) "),
    _rule(
        "cross-repo-impact.many-callers",
        800,
        r" (?:callers?|consumers?|dependents?|importers?|call ?sites?|usages?) (?:does|do|are|is|left|still|remain|exist|there)\b",
    ),
    _rule(
        "cross-repo-impact.paths",
        700,
        rf" (?:what|which|all|every|any|paths?|list|show)(?: \S+){{0,3}}? (?:lead|leads|leading|flow|flows|end up|ends up|go|goes) (?:to|in|into|at|calling) (?:the )?{_THING} ",
    ),
    _rule(
        "cross-repo-impact.have-to",
        850,
        r" (?:have|need|needs|has|got) to (?:be )?(?:change_[bp]|touch|reach_b|make_[bp])(?: \S+){0,4}? (?:if|when|after|once|before|because) | (?:has|have|needs) to be (?:change_p|adapted) ",
    ),
    _rule(
        "cross-repo-impact.change-affects",
        900,
        rf" (?:{_GERUND}|dropping|{_BASE}) (?:\S+ ){{1,8}}?(?:break|breaks|affects?|impacts?|hurt|cause problems) ",
        unless=r" (?:why|how) (?:does|do|did|is|are) ",
    ),
    _rule(
        "cross-repo-impact.how-used",
        900,
        r" how (?:is|are|do|does)(?: \S+){1,6}? (?:use_p|use_b) (?:across|throughout|in other|by other|by the other|elsewhere) ",
    ),
    _rule("cross-repo-impact.reachable", 700, r" reachable (?:from|by|via) | callees of "),
    _rule("cross-repo-impact.any", 750, rf" (?:any|other)(?: \S+){{1,3}}? {_STILL}use_b ", unless=r" any way to "),
    _rule(
        "cross-repo-impact.callers",
        900,
        r" (?:callers?|call ?sites?|use_b sites?|use sites?|dependents?|dependants?|importers?|usages?|invocations?|instantiations?|reverse dependenc(?:y|ies)"
        r"|inbound \S+|incoming use_b|users|referrers|fan-in)(?: of| to| for| in| across) | fan-in | find (?:all )?(?:use_b|usages?) | who all "
        r"| (?:call|use_b) (?:graph|hierarchy|tree|chains?|paths?|sites?) ",
        unless=r" (?:example|docs|documentation) ",
    ),
    _rule(
        "cross-repo-impact.edges",
        650,
        rf" (?:consumers?|subscribers?|clients?|listeners?|use_b|downstream) (?:of|to|from|for) (?:\S+ ){{0,2}}?{_THING} | all (?:\S+ )?(?:consumers|subscribers|clients|use_b) (?:of|to) ",
    ),
    _rule(
        "cross-repo-impact.downstream",
        800,
        r" downstream (?:\S+ )?(?:consumers?|services?|users?|dependents?|callers?|projects?|repos\w*|code|effects?|impact|clients?|teams?)"
        r"| blast radius | (?:ripple|knock-on|cascading) effects? | impact analysis | reverse dependenc(?:y|ies) | consumers of ",
        unless=r" how (?:is|are|do|does) ",
    ),
    _rule("cross-repo-impact.where-used", 800, r" where(?: \S+){1,9}? (?:use_p|use_g) ", unless=r" use_p (?:to|for) "),
    _rule("cross-repo-impact.where-we-use", 500, r" where(?: else)? (?:do|does) (?:\S+ ){1,2}?use_b ", unless=r" use_b (?:out|back) "),
    _rule(
        "cross-repo-impact.used-by",
        700,
        rf" use_p (?:by|anywhere|elsewhere|across|outside|in (?:other|any|which|all|more)|from) |\A (?:is|are) (?:\S+ ){{1,6}}?{_STILL}use_p "
        r"| by (?:whom|who|what|which(?: \S+){1,2}) (?:is|are|gets?) (?:\S+ ){0,6}?use_p ",
        unless=r"\A (?:what|which)(?: \S+){1,3} (?:is|are) use_p | how (?:is|are|do|does) ",
    ),
    _rule(
        "cross-repo-impact.breaks",
        950,
        rf" (?:breaks?|affected|impacted|affects?|impacts?|stop (?:working|compiling)|fails?|fail to compile|go wrong|needs? (?:to be )?(?:change_\w|to change_b))"
        rf"(?: \S+){{0,6}}? (?:if|when|by|after|once|were|should)(?: \S+){{0,7}}? (?:{_ANY}|stop|make|making|dropping|upgrade|removal|migration) ",
        unless=r" (?:why|how) (?:does|do|is|are) ",
    ),
    _rule(
        "cross-repo-impact.if-i",
        750,
        rf" if (?:i|we|you|someone|one) (?:\S+ ){{0,3}}?(?:{_ANY}|stop|make|made|break|turn) | (?:i want|i would like|we want|before|before i) (?:to )?(?:change_b|change_g|reach_b) ",
        unless=r" (?:how|why) (?:does|do|is|are|would) | happened ",
    ),
    _rule(
        "cross-repo-impact.impact-of",
        900,
        rf" (?:impact|effects?|consequences?|ramifications?|implications?|fallout|repercussions?|side effects?|risks?) (?:of|if|from) (?:\S+ ){{0,3}}?(?:{_ANY}|making|removal|upgrade|migration) "
        r"| affected by ",
    ),
    _rule(
        "cross-repo-impact.safe",
        850,
        r" (?:safe|safely|ok|okay|possible) (?:to )?(?:change_b|get rid|remove) | can (?:i|we) (?:\S+ly |just )?(?:change_b|get rid) ",
        unless=" how can ",
    ),
    _rule(
        "cross-repo-impact.places",
        800,
        rf" {_PLACES}(?: in \S+(?: \S+)?)?(?: (?:that|which|where|who))?(?: \S+ly)?(?: we| are| is| still| i){{0,2}} (?:use_b|use_g) ",
        unless=r" (?:how|why) (?:do|does|can|should|is|are|to) | example | (?:class|function|method|module|file) (?:that|which) (?:use_b) (?!(?:the )?_)",
    ),
    _rule(
        "cross-repo-impact.code-using",
        600,
        rf" (?:use_b|use_g) (?:\S+ )?{_THING} ",
        also=r" (?:code|that|which|everything|everyone|all|trace|show|list|find|still) ",
        unless=r" (?:how|when|why|example|examples|should) ",
    ),
    _rule(
        "cross-repo-impact.trace",
        600,
        r" trace (?:\S+ ){0,6}?(?:use_[bpg]|ends up|callers|paths? into|flows? to|goes) | (?:used|use_p|references|use_b) (?:anywhere|elsewhere) ",
    ),
    _rule(
        "cross-repo-impact.across",
        300,
        r" (?:across|throughout) (?:\S+ )?(?:repos|repositories|projects|services|packages|codebase|monorepo|teams|modules|org\w*|workspace) ",
    ),
    _rule("cross-repo-impact.unused", 550, r" (?:unused|dead code|orphaned|nobody use_b|no longer use_p|not use_p|never use_p) "),
    _rule("cross-repo-impact.dependencies", 550, r" dependenc(?:y|ies) (?:of|on|graph) | what (?:all )?(?:does|do) \S+ use_b "),
)

TYPED = (
    _named(
        "typed-symbol.bare",
        950,
        rf"\A(?= (?:\S+ )*_id_ ) (?:(?:the|a|in|of|for|on|{_KINDS}|_path_|\.) )*(?:{_NAME} )(?:(?:the|a|in|of|for|on|{_KINDS}|_path_|\.|{_NAME}) )*\Z",
    ),
    _named("typed-symbol.name", 350, r" _id_ "),
    _named("typed-symbol.constant", 200, r" _const_ "),
    _named(
        "typed-symbol.define",
        600,
        rf" (?:defined|declared|definitions?|declarations?|declares?|defines?|signatures?|go to|goto|jump to) (?:.* )?{_NAME} | {_NAME} (?:.* )?(?:defined|declared|definition|declaration|signature|live|lives) ",
    ),
    _rule(
        "typed-symbol.hierarchy",
        800,
        rf" (?:implementations?|implementors?|implementers|sub-?class(?:es|ing)?|super-?class(?:es)?|(?:base|parent|derived|child) class(?:es)?|use_b from|inherits?|inheriting|overrid(?:es?|den|ing)|"
        rf"extends?|extending|implements?|make_[bg]|hierarchy|conforms? to|derives? from|satisf(?:y|ies))(?: \S+){{0,4}}? {_NAME} "
        rf"| {_NAME} (?:\S+ )?(?:implementations?|implementors|subclass(?:es)?|hierarchy|make_b|extends|inherits) ",
        unless=r" (?:how|why|when) (?:do|does|is|are|to|did|was|can|should) | make_b (?:\S+ )*(?:commit|pr) ",
    ),
    _rule(
        "typed-symbol.which-types",
        700,
        r" (?:which|what|all|list|find|show)(?: \S+){0,3}? (?:class(?:es)?|types?|structs?|models?) (?:that |which )?(?:make_b|implement|extend|inherit|override|subclass|conform) ",
    ),
    _named(
        "typed-symbol.members",
        600,
        rf" {_MEMBERS}(?: \S+){{0,5}}? (?:of|on|in|for|to|does|do|can|is|has|have)(?: \S+){{0,4}}? {_NAME} | {_NAME} (?:\S+ )?{_MEMBERS} ",
    ),
    _named(
        "typed-symbol.kind",
        500,
        rf" {_KINDS} (?:called |named )?{_NAME} | {_NAME} (?:\S+ ){{0,2}}?{_KINDS} ",
    ),
    _named(
        "typed-symbol.find",
        350,
        r" (?:find|show|locate|open|see|view|get|give|where is|where are|where does|look up|lookup|source of|code of|body of|code for|source for|looking for)(?: me)?(?: the)?(?: \S+){0,2}? _id_ ",
    ),
    _named(
        "typed-symbol.contract",
        600,
        rf" (?:returns?|accepts?|takes?|raises?|throws?|requires?|use_b|exports?|exported|exposes?|yields?) (?:\S+ )?{_NAME} | {_NAME} (?:return|accept|take|raise|throw|have|expose|yield|use_b)s? ",
        also=r" (?:what|which|does|do|whether) ",
        unless=r" (?:how|who|why|when) ",
    ),
    _rule(
        "typed-symbol.returns",
        700,
        rf" what (?:does|do|can|should|will)(?: \S+){{0,4}}? {_NAME} (?:\S+ )?(?:returns?|accept|take|raise|throw|yield|expose|expect|need|use_b) "
        rf"| (?:what|which) (?:\S+ )?(?:{_KINDS}s?|class(?:es)?|{_MEMBERS}) (?:does|do|is|are|can|has|have)(?: \S+){{0,3}}? {_NAME} ",
    ),
    _named("typed-symbol.kind-alone", 300, rf" {_KINDS} (?:called|named|that) | (?:return type|type signature|type hint|type annotation) "),
)

CONCEPTUAL = (
    _rule(
        "conceptual.how",
        550,
        r" how (?:do|does|is|are|will|would|exactly|it|the|this|that|these|we|(?!was )\S+s) ",
        unless=r" how (?:do|would) (?:i|you|one) | how old | how does one ",
    ),
    _rule("conceptual.how-i", 300, r" how (?:do|can|should|would) (?:i|you) "),
    _rule("conceptual.why", 650, r" why (?:do|does|is|are|would|will|must|should|can|not|the|we|this|isn't|doesn't) "),
    _rule("conceptual.why-was", 300, r" why (?:was|did|were) "),
    _rule("conceptual.where", 350, r" where (?:is|are|do|does|in|can|could|should|the|we|exactly) "),
    _rule(
        "conceptual.explain",
        600,
        r" (?:explain|explanation of|describe|understand|understanding|overview|summari[sz]e|walk (?:me|us)? ?through|architecture|architectural|responsible for|in charge of|"
        r"purpose of|difference between|relationship between|interaction between|internals of|under the hood|high[- ]level|end[- ]to[- ]end|big picture|life ?cycle|mental model|how it works) ",
        unless=r" who is ",
    ),
    _rule(
        "conceptual.noun",
        350,
        r" (?:design|mechanism|logic|strategy|approach|rationale|concept|workflow|pipeline|flow|semantics|invariants?|trade-?offs?|policy|algorithm|model|pattern|handling) ",
    ),
    _rule("conceptual.happens", 600, r" (?:what (?:happens|will happen|would happen)|what is going on|goes on inside) "),
    _rule("conceptual.what-does", 500, r" what (?:does|do)(?: \S+){1,8}? (?:do|mean|represent|handle|control|happen) "),
    _rule("conceptual.what-acts", 400, r" what (?!is |does |was |has |use_b |breaks |use_)(?:\w+[a-rt-z]s|reach_b) (?!_)"),
    _rule("conceptual.what-is", 250, r" what (?:is|are) "),
    _rule(
        "conceptual.agent",
        500,
        r" (?:who|what|which(?: \S+){1,4}?)(?: \S+ly)? (?:owns?|holds?|manages?|decides?|handles?|controls?|determines?|performs?|validates?|checks?|computes?|creates?|closes?|starts?|stops?|"
        r"guarantees?|ensures?|prevents?|protects?|limits?|drives?|keeps?|makes?|cleans?|enforces?|coordinates?|schedules?|stores?|generates?|turns?|converts?|resolves?|tells?|chooses|picks) ",
    ),
    _rule(
        "conceptual.code-that",
        400,
        r" (?:code|logic|component|implementation|part|layer|machinery) (?:that|which|for|responsible|to|of|where|doing) | is there (?:any |some |a )?(?:code|logic|place) ",
    ),
)

IDENTIFIER = (
    _named("identifier.quoted", 600, r" _q_ "),
    _named("identifier.regex", 900, r" _r_ "),
    _named("identifier.literal", 550, r" (?:_url_|_lit_) "),
    _named("identifier.flag", 700, r" _flag_ "),
    _named("identifier.constant", 300, r" _const_ "),
    _named(
        "identifier.constant-alone",
        950,
        r"\A (?:(?:the|env|environment|variable|constant|_path_|in|\.) )*_const_ (?:(?:env|environment|variable|constant|_path_|in|\.) )*\Z",
    ),
    _named(
        "identifier.text",
        400,
        rf" (?:strings?|literals?|texts?|phrases?|substrings?|messages?|sentence|comments?|wording|label|lines?|words?|print|prints|log|logs|output|warning|snippet) (?:\S+ ){{0,3}}?{_THING} ",
    ),
    _rule(
        "identifier.search",
        600,
        r" (?:grep|rg|ripgrep|search (?:the |our |all |in )?(?:\S+ )?for|substrings?|placeholder text|look for the literal|exact match(?:es)?|exact (?:text|string|phrase)|verbatim|literally|occurr?ences?(?: of)?|mentions?(?: of)?|lines? (?:with|that|matching|containing)|"
        r"containing|contains?|hits for|hard-?coded|hard coded|magic (?:number|string|constant|value)) ",
        unless=r" how (?:does|do|is|are) | (?:commit|commits|pr) that ",
    ),
    _named(
        "identifier.environment",
        700,
        rf" (?:env|environment)(?: vars?| variables?)? (?:\S+ ){{0,6}}?{_NAME} | {_NAME} (?:\S+ ){{0,3}}?(?:env|environment) ",
    ),
    _named(
        "identifier.setting",
        550,
        r" (?:constants?|(?:error|exit|status|http) (?:status )?code|http status|status|(?:feature )?(?:flag|toggle)|config(?:uration)? (?:key|option|setting|value|entry|file)|settings?|cookie(?: name)?|header|css class|i18n key|"
        r"translation key|column|table|topic|queue name|metric(?: name)?|event name|route|role|permission|option|key|field name|host ?name|port|selector|test id|secret|label) "
        r"(?:called |named |is |name |key |with |value )?(?:_const_|_id_|_lit_|_q_|_flag_|_num_|_path_|_url_) ",
    ),
    _named(
        "identifier.setting-after",
        450,
        r" (?:_const_|_id_|_lit_|_flag_|_q_) (?:flag|option|switch|env|environment|config|setting|column|cookie|header|metric|constant|key|error code|log line|log message|table|topic) ",
    ),
    _named(
        "identifier.constant-event",
        500,
        r" _const_ (?:\S+ )?(?:thrown|raised|emitted|returned|set|reach_[bp]|logged|printed|checked|appear|appears|come from|comes from) ",
    ),
    _named(
        "identifier.emitted",
        300,
        r" _q_ (?:\S+ ){0,3}?(?:emitted|printed|logged|raised|thrown|output|shown|displayed|set|written|come from|comes from|reach_p|appears?) |"
        r" (?:prints?|logs?|emits?|raises?|throws?|outputs?|shows?|displays?|says|saying) _q_ ",
    ),
    _named(
        "identifier.todo",
        800,
        r" (?:TODO|FIXME|HACK|XXX|NOQA|nosec)s?\b| (?:fixmes?|todos|(?:the|a|any|every|each) todo|todo (?:about|for|comments?|left|in|regarding|on|notes?)) ",
        "text",
    ),
    _rule(
        "identifier.error-text",
        800,
        r"\A (?:[\w.]*(?:Error|Exception|Panic|Warning|Fault)|panic|error|fatal|warning|traceback|E\d+)(?:\[\w+\])?: ?\S|\w(?:Error|Exception): \w",
        "text",
    ),
    _rule(
        "identifier.files",
        800,
        r" files? (?:named|called|matching|with (?:the )?(?:extension|name|suffix)|ending|whose name) | (?:filename|file name) ",
    ),
    _rule(
        "identifier.the-text",
        800,
        r" (?:strings?|texts?|literals?|phrases?|substrings?|wording) (?:literal )?(?:_q_|_lit_|_r_|_num_) ",
        unless=r" (?:who|when|why|commits?|prs?|pull request) ",
    ),
    _named(
        "identifier.setting-word",
        500,
        r" (?:flag|toggle|switch|bucket|host ?name|host|queue|topic|cookie|header|option|key|label|secret|metric|event) (?:name |named |called )?\w+(?:-\w+)+ ",
    ),
    _rule(
        "identifier.which-file",
        750,
        r" (?:which|what|list|find|all)(?: \S+)? (?:files?|scripts?|configs?|yamls?|manifests?|migrations?|templates?|lines?) (?:that )?(?:sets?|contains?|contain|mentions?|mention|has|have|holds?|defines?) ",
    ),
    _named("identifier.remarks", 450, r" _(?:id|lit|q)_ (?:statements?|comments?|occurrences?|annotations?|lines?) "),
    _named("identifier.path", 400, r" _path_ ", unless=r"_id_"),
    _named("identifier.number", 350, r" (?:code|number|value|constant|port|id|line|status) _num_ "),
)

_LIBRARY = r" (?:_lib_|_common_) "
DOCS = (
    _rule(
        "docs.document",
        850,
        r" (?:docs|documentation|readmes?|api references?|reference (?:docs|manual|documentation|guide)|(?:user|developer|admin|style|setup|deployment|configuration|integration|troubleshooting|upgrade|migration|"
        r"installation|install|contributing|contribution|getting started) (?:guides?|instructions|steps|notes|manual)|handbook|tutorials?|man ?pages?|cookbook|cheat ?sheets?|getting started|quick ?start|"
        r"(?:design|policy|requirements|architecture|onboarding|decision) (?:docs?|documents?)|doc (?:for|on|of|about)|runbooks?|playbooks?|adrs?|decision records?|rfcs?|guidelines?|(?:usage|build|release|running) instructions|instructions (?:on how|for (?:running|building|installing|using|setting))|(?:configuration|command|cli|config|\S+) reference (?:for|of|page)|wiki|faqs?|specification|spec (?:of|for)|white ?paper|guide (?:to|for|on)|documented|manual (?:page|for|section)) ",
        "naming",
        unless=r" (?:docs|documentation) (?:folder|directory|dir|tree) | (?:docs|documentation|readme)(?: \S+)? (?:generated|built|published|rendered|deployed|indexed|hosted|parsed) "
        r"| (?:generate|generates|build|builds|publish|render|renders|deploy|index|indexes|parse|parses) (?:the |our )?(?:docs|documentation) "
        r"| (?:docs|documentation) (?:build|pipeline|generator|indexer|search|expert|adapter) ",
    ),
    _rule(
        "docs.library-how",
        800,
        rf" how (?:to|(?:do|does|can|could|should|would) (?:i|you|one|someone|people|we)) (?:\S+ )*?(?:_lib_|_common_) |{_LIBRARY}(?:.* )?how to ",
        "naming",
        unless=_OURS,
    ),
    _rule(
        "docs.library-facts",
        800,
        r" (?:api|options?|parameters?|params|arguments?|args|kwargs|syntax|usage|examples?|sample|defaults?|configuration|supports?|signature|reference|decorators?|versions?|_ver_|deprecated|"
        r"deprecation|deprecations|breaking|compatib\w+|best practices?|recommended|(?:correct|right|proper|best|idiomatic) way|way to|equivalent|alternative|accepts?|features?|provides?|allows?|"
        r"official|settings|does (?:_lib_|_common_)) ",
        "naming",
        also=_LIBRARY,
        unless=_OURS,
    ),
    _rule(
        "docs.command-options",
        650,
        r" (?:options|flags|arguments|subcommands|parameters|switches) (?:of|for|does|to|are) (?:\S+ ){0,4}?(?:command|cli|tool|script|subcommand|binary|action) ",
        "naming",
        unless=_OURS,
    ),
    _rule(
        "docs.in-library",
        500,
        r" (?:what|which|does|do|is|are|can|could|should)(?: \S+)*? (?:in|of|with|by|from|using) (?:the )?(?:_lib_|_common_) ",
        "naming",
        unless=_OURS,
    ),
    _rule("docs.library-topic", 450, r" _lib_ ", "naming", unless=_OURS),
    _named("docs.library-start", 300, r"\A (?:_lib_|_common_) \S+ ", "naming"),
    _rule(
        "docs.deprecated-in",
        700,
        r" (?:deprecated|removed|changed|supported) in (?:_lib_|_common_) (?:_ver_|_num_)?",
        "naming",
        unless=" why ",
    ),
    _rule(
        "docs.how-to",
        420,
        r" how (?:to|(?:do|can|should|would|could) (?:i|you|one)) ",
        "naming",
        unless=r" (?:our|this repo|this project|this codebase|here) ",
    ),
    _rule(
        "docs.how-to-use",
        600,
        r" how (?:to|(?:do|can|should|would) (?:i|you|one)) (?:use|install|configure|set ?up|contribute|upgrade|get started|enable|run) ",
        "naming",
    ),
    _rule(
        "docs.example", 500, r" (?:examples?|sample|snippet) (?:of|for|usage|code|using|showing) | usage (?:example|of)s? (?!_)", "naming"
    ),
    _rule("docs.install", 450, r" (?:install|installation|installing|prerequisites|setup instructions|command reference) ", "naming"),
)

RULES: tuple[Rule, ...] = (*HISTORY, *IMPACT, *TYPED, *CONCEPTUAL, *IDENTIFIER, *DOCS)
