"""Recognise text that is written to command a language model rather than to ask about code.

Such a question is searched as plain text like any other: the router obeys nothing it reads. The flag tells the reader of the answer
and of the receipt. Ordinary questions about prompts (`where is the system prompt built`) must not raise it, so most patterns want
the imperative: at the start of a sentence, or after `please`, `now`, `you must` and the like.
"""

from __future__ import annotations

import re
import unicodedata

from search_router.router.rules.gated import GatedPattern

_COMMANDED = (
    r"(?:\A|[.!?:;,\n\"'`(>\]–—-]\s*|\b(?:please|now|then|and|just|also|instead|must|should|shall|"
    r"to you|you to|you will|you can|you may|"
    r"you need to|you have to|want you to|immediately|first|kindly|simply|important|task|attention|"
    r"assistant|ai|model|hey|ok|okay|hello)[,:]?\s+)"
)
_INSTRUCTIONS = (
    r"(?:instruction|prompt|guideline|directive|direction|training|programming|conversation|context|"
    r"constraint|restriction|order|command|message)s?"
)

PATTERNS = tuple(
    GatedPattern(pattern)
    for pattern in (
        # ignore all previous instructions; disregard everything above; forget what you were told
        _COMMANDED + r"(?:ignore|disregard|forget|override|bypass|discard|neglect|drop|do not follow|don't follow|"
        r"stop following)\s+(?:\w+\s+){0,3}?"
        r"(?:previous|prior|above|earlier|preceding|foregoing|existing|original|initial|your|system|those)\s+(?:\w+\s+){0,3}?(?:"
        + _INSTRUCTIONS
        + r"|rules?|polic(?:y|ies))\b",
        _COMMANDED + r"(?:ignore|disregard|forget|override|bypass|discard)\s+(?:all|any|every|each)(?:\s+of)?(?:\s+the)?\s+(?:safety\s+)?"
        r"(?:instructions?|prompts?|guidelines?|directives?)\b",
        _COMMANDED + r"(?:ignore|disregard|forget)\s+(?:everything|all|anything|what)\s+(?:(?:that|which|you|i|"
        r"we)\s+){0,3}?(?:above|before|previously|were told|was said|know|learned|have been)",
        # you are now …; from now on you …; pretend to be …; act as an unrestricted …
        r"\byou are (?:now|no longer)\s+(?:a|an|the|in|free|dan|able|allowed|unrestricted|acting|operating|bound|going|playing|my)\b",
        r"\bfrom (?:now|this point|here) on(?:ward)?s?,?\s+(?:you|your|respond|answer|act|always|only)\b",
        _COMMANDED + r"(?:pretend|imagine|roleplay|role-play)\s+(?:to be|that you|you are|you're|as)\b",
        _COMMANDED + r"act as (?:if you|though you|an? (?:unrestricted|uncensored|evil|different|jailbroken|helpful|root|admin))",
        _COMMANDED + r"(?:enter|enable|activate|switch to|turn on)\s+(?:developer|god|dan|jailbreak|unrestricted|sudo|admin)\s+mode\b",
        r"\b(?:jailbreak(?:en)? (?:prompt|yourself|mode)|do anything now|your new (?:instructions|"
        r"task|role|goal|objective|persona)|new (?:system )?instructions\s*:)",
        # reveal your system prompt; repeat the words above
        _COMMANDED + r"(?:reveal|print|show|repeat|output|display|leak|tell|give|dump|expose|recite|share|write|"
        r"return|summari[sz]e)\s+(?:\w+\s+){0,4}?your\s+(?:\w+\s+){0,2}?"
        r"(?:prompts?|instructions?|rules|guidelines|configuration|secrets?|api keys?|credentials)\b",
        _COMMANDED + r"(?:reveal|leak|repeat|recite|expose|output|dump)\s+(?:me\s+)?(?:the\s+)?(?:(?:full|entire|"
        r"whole|exact|hidden|secret|initial)\s+)*(?:system|developer|hidden|initial)\s+(?:prompt|message|"
        r"instructions)"
        r"\s*(?:\Z|[.!?,\n]|verbatim|word for word|to me|above|now|in full)",
        _COMMANDED + r"(?:repeat|print|output|recite)\s+(?:all\s+)?(?:the\s+)?(?:words|text|everything|instructions|content)\s+above\b",
        r"\b(?:what (?:is|are|was|were)|tell me)\s+your\s+(?:system|initial|original|hidden|secret)\s+(?:prompt|"
        r"instructions?|message)s?\b",
        # act behind the user's back; run what follows
        r"\b(?:do not|don't|never|without)\s+(?:tell|telling|inform|informing|mention|mentioning|alert|"
        r"alerting|notify|notifying|ask|asking)\s+(?:this\s+|it\s+|anything\s+)?(?:to\s+)?the user\b",
        _COMMANDED + r"(?:run|execute|call|invoke|use)\s+(?:the\s+following|this)\s+(?:shell\s+|bash\s+)?(?:command|"
        r"code|script|tool|function)s?\b\s*[:`]",
        _COMMANDED + r"(?:send|post|upload|exfiltrate|forward|email)\s+(?:\S+\s+){0,5}?(?:to|at)\s+(?:https?://|\S+@\S+)",
        # the markup of chats and of tool calls
        r"<\|[a-z_ ]{2,40}\|>",
        r"\[/?inst\]|<</?sys>>",
        r"</?(?:antml:\w+|tool_calls?|function_calls?|tool_use|tool_result|tool_response|function_results?|"
        r"invoke\s+name=|system-reminder|system_prompt)\b",
        r"</?(?:system|assistant|instructions?)>.{0,80}?\b(?:you|your|ignore|must|obey|delete|remove|run|execute|reveal|send|output)\b",
        r"(?:\A|\n)\s*#{1,4}\s*(?:system|instructions?|human|assistant|user)\b\s*:?\s*(?:\n|you\b)",
        r"(?:\A|\n)\s*(?:system|assistant|human|developer)\s*:\s*(?:you|your|ignore|from now|new|always|never|i am|important)\b",
        r"\{\s*\"(?:name|tool|tool_name|function|recipient_name)\"\s*:\s*\"[^\"]{1,80}\"\s*,\s*\"(?:arguments|"
        r"parameters|args|input|tool_input)\"\s*:",
        r"\{\s*\"(?:tool_calls?|function_call|tool_uses)\"\s*:\s*[\[{]",
    )
)
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|`[^`]{1,200}`|“[^”]{1,200}”")
_WORDS_ENOUGH = 3


def is_injection_shaped(text: str) -> bool:
    """Whether a text of bounded length (callers pass at most 4096 characters) reads like a command to a language model.

    Invisible characters and compatibility forms are undone first, so that `ig\\u200bnore` counts. A text that is quoted inside a
    question of at least three words is what is being searched for and does not count, except for markup.
    """
    folded = unicodedata.normalize("NFKC", text)
    plain = (
        "".join(c for c in folded if unicodedata.category(c) != "Cf").casefold().replace("’", "'")
        if not folded.isascii()
        else folded.casefold()
    )
    outside = _QUOTED.sub(" _ ", plain)
    asked = outside if len(re.findall(r"[a-z]{2,}", outside)) >= _WORDS_ENOUGH else plain
    return any(pattern.search(asked) for pattern in PATTERNS) or any(pattern.search(plain) for pattern in PATTERNS[_MARKUP:])


_MARKUP = next(i for i, pattern in enumerate(PATTERNS) if pattern.source.startswith(r"<\|"))
