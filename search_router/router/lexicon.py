"""Word lists that lexical analysis looks things up in: what carries no content, what names a language, what only looks like code.

Plain data. Every list is general English or common knowledge about software; none of it is taken from a set of questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _words(
    """
    a about all also am an and any anybody anyone anything are as at be because been being but by can cannot could did do does doing done
    either else every everyone everything few for from get gets give gives got had has have having he her here hers him his how however i
    if in into is it its itself just kind let like look looking lot many may maybe me might mine more most much must my myself need needs
    neither nor not now of off on once one only or other others our ours ourselves out over own per please really same shall she should show
    since so some somebody someone something somewhere still such tell than that the their theirs them then there these they thing things
    this those though through to too under until up upon us use used uses using very via want wants was we well were what whatever when
    whenever where wherever whether which while who whoever whom whose why will with within without would yes yet you your yours
    """
)
"""Function words and the verbs of asking. A question of nothing else has nothing to search for."""

LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        "c#": "csharp", "c++": "cpp", "clojure": "clojure", "cpp": "cpp", "csharp": "csharp", "elixir": "elixir", "erlang": "erlang",
        "f#": "fsharp", "golang": "go", "groovy": "groovy", "haskell": "haskell", "java": "java", "javascript": "javascript",
        "kotlin": "kotlin", "lua": "lua", "ocaml": "ocaml", "objective-c": "objectivec", "perl": "perl", "php": "php", "python": "python",
        "python3": "python", "ruby": "ruby", "rust": "rust", "scala": "scala", "solidity": "solidity", "typescript": "typescript",
    }
)  # fmt: skip
"""Words that name a programming language wherever they stand, to the name that scopes use."""

AMBIGUOUS_LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        "bash": "bash", "c": "c", "css": "css", "dart": "dart", "go": "go", "html": "html", "js": "javascript", "julia": "julia",
        "nix": "nix", "py": "python", "r": "r", "shell": "bash", "sql": "sql", "swift": "swift", "toml": "toml",
        "ts": "typescript", "yaml": "yaml", "zig": "zig",
    }
)  # fmt: skip
"""Words that name a language only after `in` or before `code`."""

FILE_EXTENSIONS = _words(
    """
    astro bash bat bazel bzl c cc cfg clj cljs cmake conf cpp cs csproj css csv cts cu cue cxx dart dockerfile edn erb erl ex exs fs fsx
    gemspec go gql gradle graphql groovy h hbs hcl hh hpp hrl hs htm html hxx ini ipynb java jl js json json5 jsonc jsonl jsx kt kts less
    lock lua md mdx mjs ml mli mm mts nix nim php pl pm proto ps1 pxd py pyi pyx r rake rb rs rst sass sbt scala scss service sh sol sql
    svelte svg swift tf tfvars thrift toml ts tsx txt v vb vim vue xml xsd yaml yml zig zsh
    """
)
"""A dotted token that ends in one of these is a file name."""

SOURCE_FOLDERS = _words(
    """
    .github adapters app apps assets backend bin build cmd common components config configs core crates db deploy docs examples frontend
    include infra internal lib libs migrations modules packages pkg plugins resources scripts server services spec src static templates
    test tests third_party tools utils vendor web
    """
)
"""A slash-separated token that starts with one of these is a path; `client/server` and `read/write` are prose."""

PROSE_NAMES = _words(
    """
    ansible asp.net airflow artifactory bitbucket blender browserify bluetooth chrome circleci cloudflare cloudfront cloudwatch codeql
    coffeescript commonjs couchdb cuda datadog devops dialogflow docker dockerhub dynamodb ebpf ecmascript elasticsearch elastic facebook
    fastapi firefox firebase flutter github gitlab google gradle grafana graphql grpc grpcs hashicorp heroku html5 http2 icloud ios ipad
    iphone ipados javascript jenkins jquery jupyter junit kafka keycloak kubernetes langchain latex linkedin linux llamaindex llvm macos
    mariadb mariadb's markdown memcached microsoft mongodb mqtt mysql nats nestjs netlify next.js newrelic nginx node.js nodejs numpy nuxt
    nosql oauth oauth1 oauth2 openai openapi openssl opensearch opentelemetry oracle paypal postgres postgresql postscript powershell
    prometheus protobuf pubsub pypi pytorch rabbitmq reactjs redis redhat restful rocksdb sass scylladb selenium sendgrid sentry socket.io
    sonarqube spring sqlalchemy sqlite stackoverflow starlette stripe svelte tensorflow terraform three.js twitter typescript ubuntu
    unicode unix vscode vue.js webassembly webauthn webdav webgl webgpu webhook webhooks webpack webrtc websocket websockets wifi windows
    wordpress youtube zookeeper e.g i.e a.m p.m vs u.s d3.js
    """
)
"""Names of products and abbreviations that are spelled like code and are prose."""

CODE_SUFFIXES = tuple(
    sorted(
        _words(
            """
    Error Exception Handler Parser Router Builder Factory Manager Client Service Controller Repository Adapter Provider Resolver
    Serializer Deserializer Encoder Decoder Scheduler Dispatcher Listener Observer Validator Iterator Visitor Cursor Registry
    Tokenizer Lexer Formatter Renderer Loader Reader Writer Worker Executor Generator Processor Interceptor Middleware Reconciler
    Allocator Compiler Transformer Subscriber Publisher Emitter Logger Tracker Watcher Wrapper Proxy Mutex Semaphore
    """
        )
    )
)
"""A capitalised word inside a sentence that ends in one of these is a class name."""

KIND_NOUNS = _words(
    """
    class classes struct structs interface interfaces enum enums trait traits protocol protocols type types method methods function
    functions component components macro macros mixin mixins record records typedef alias
    constructor dataclass exception hook hooks decorator
    """
)
"""Kinds of definition: a capitalised word beside one of these names that definition."""

COMMON_WORD_LIBRARIES = _words(
    """
    anyhow arrow async base64 behave black blessed build bytes cache chain click clients cloud colors commander
    common config connect context cookie copy core cors crypto data database debug diff either email errors event events fast
    fire flow formatter framework functions futures glob graph helmet http image images immutable index invoke json lambda layers
    linter log logger logging markdown marked memory messages metrics migrate mime models money morgan mustache next opener
    optional parse parser passport path plug plugin pool pretty process progress prompt promise proxy query queue quote
    rand random ray records regex rename request requests responses retry rich router routes schedule schema security semver
    send serve server session sharp shell signal signals slash socket source spring stack state storage stream string style table tables
    tar template templates test tests text time toolbox tools tower trace tracing transitions tree types typing url utils uuid validate
    validator validators values version walk watch web workers
    """
)
"""Names of packages that are everyday words: `requests` in `how are requests throttled` is not the library."""
