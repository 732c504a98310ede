"""What SAM makes of a template, and what cfn-lint says of it, for the Go tests
beside this file. Runs in .tools/sam, where both are installed.

Reads from standard input a JSON list of {"dir": folder, "parameters": {...},
"lint": [files], "local": bool}, parameters as given to a deploy besides the
defaults, and writes
a list of {"source": {...}, "template": {...}, "nested": {file: {...}}, "error":
text, "lint": [findings]}: dir/template.yaml as it is and translated, dir/infra/*.yaml
as they are, all with intrinsics in their long form; why SAM refuses; cfn-lint's
findings on the files. With "local" also "routes", "POST /path function" each, as
`sam local start-api --disable-authorizer` finds them.
"""

import copy
import functools
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

import boto3
import cfnlint.api
import cfnlint.config
from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
from samcli.yamlhelper import yaml_parse
from samtranslator.model.exceptions import InvalidDocumentException
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

# SAM asks IAM for these by name; offline they are named here.
POLICIES = {
    name: "arn:aws:iam::aws:policy/service-role/" + name
    for name in ("AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole")
}


@functools.lru_cache(maxsize=None)
def parsed(text):
    return yaml_parse(text)


def read(path):
    return copy.deepcopy(parsed(path.read_text()))


def translate(template, given):
    # Packing uploads the code; translation wants to see where to.
    template.get("Globals", {}).get("Function", {})["CodeUri"] = "s3://bucket/code"
    parameters = {k: v["Default"] for k, v in template.get("Parameters", {}).items() if "Default" in v} | given
    translator = Translator(POLICIES, Parser(), boto_session=boto3.Session(region_name="us-east-1"))
    return translator.translate(template, parameters)


def lint(path):
    # The file's own exceptions (its Metadata) are honoured by the rules' filter.
    config = cfnlint.config.ManualArgs(regions=["us-east-1"])
    return [f"{path.name}:{m.linenumber}: {m.rule.id} {m.message}" for m in cfnlint.api.lint_file(path, config=config)]


def local_routes(folder, given):
    stacks, _ = SamLocalStackProvider.get_stacks(
        str(folder / "template.yaml"), parameter_overrides={k: str(v) for k, v in given.items()}
    )
    found = ApiProvider(stacks, cwd=str(folder), disable_authorizer=True).routes
    return sorted(f"{m} {r.path} {r.function_name}" for r in found for m in r.methods if m != "OPTIONS")


def answer(ask):
    folder = Path(ask["dir"])
    out = {"source": {}, "template": {}, "nested": {}, "error": "", "lint": [], "routes": []}
    try:
        for path in sorted((folder / "infra").glob("*.yaml")):
            out["nested"]["infra/" + path.name] = parsed(path.read_text())
        out["source"] = read(folder / "template.yaml")
        out["template"] = translate(read(folder / "template.yaml"), ask.get("parameters", {}))
    except InvalidDocumentException as e:
        out["error"] = "; ".join(str(c.message) for c in e.causes)
    except Exception as e:  # whatever it is, SAM could not take the template
        out["error"] = f"{type(e).__name__}: {e}"
    if ask.get("local"):
        try:
            out["routes"] = local_routes(folder, ask.get("parameters", {}))
        except Exception as e:
            out["routes"] = [f"{type(e).__name__}: {e}"]
    for name in ask.get("lint", []):
        try:
            out["lint"] += lint(folder / name)
        except Exception as e:
            out["lint"].append(f"{name}: {type(e).__name__}: {e}")
    return out


json.dump([answer(a) for a in json.load(sys.stdin)], sys.stdout, default=str)
