"""Checks that the AWS commands of Markdown pages exist: service, operation and
every option, by the AWS SDK's own models. Runs in .tools/sam. Prints one line for
each that does not exist; reads the pages named as arguments."""

import re
import sys

import botocore.session
from botocore import xform_name
from botocore.exceptions import UnknownServiceError

# The AWS CLI's own commands and options, which are no operations of a service.
CUSTOM = {("logs", "tail")}
COMMON = {"query", "output", "region", "profile"}

session = botocore.session.get_session()
text = "\n".join(open(page).read() for page in sys.argv[1:])
for match in re.finditer(r"\baws ([a-z][a-z0-9-]*) ([a-z][a-z0-9-]*)((?:[^\n`]|\\\n)*)", text):
    service, command, rest = match.groups()
    if (service, command) in CUSTOM:
        continue
    try:
        model = session.get_service_model(service)
    except UnknownServiceError:
        print(f"aws {service}: no such service")
        continue
    operations = {xform_name(name, "-"): name for name in model.operation_names}
    if command == "wait":  # aws SERVICE wait WAITER: a waiter of the service, with its operation's options
        waiters = session.get_component("data_loader").load_service_model(service, "waiters-2")["waiters"]
        waiter, _, rest = rest.strip().partition(" ")
        command = f"wait {waiter}"
        operations = {f"wait {xform_name(name, '-')}": w["operation"] for name, w in waiters.items()}
        rest = " " + rest
    if command not in operations:
        print(f"aws {service} {command}: no such command")
        continue
    shape = model.operation_model(operations[command]).input_shape
    options = {xform_name(name, "-") for name in (shape.members if shape else {})}
    # Of commands inside $(...) the options belong to them.
    outer = re.sub(r"\$\((?:[^()]|\([^()]*\)|\$\((?:[^()])*\))*\)", "", rest).split(" aws ")[0].split("; ")[0]
    for option in re.findall(r" --([a-z][a-z-]*)", outer):
        if option.removeprefix("no-") not in options and option not in options | COMMON:
            print(f"aws {service} {command}: no option --{option}")
