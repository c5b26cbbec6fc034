#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Adapters for agent frameworks: on stand-ins, and against the frameworks themselves (test/python/frameworks.txt) where
tools/setup could fetch them, without a model: its answers are scripted."""

import asyncio
import contextlib
import importlib.util
import json
import pickle
import os
import subprocess
import sys
import threading
import time
import types

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
from vitrotest import check, check_equal, check_in, folder, is_bare, raises, skip, test

import kept
import vitro
from vitro.adapters import autogen, e2b, langchain, smolagents

BEST = {"require": "best-effort"}


# ---- stand-ins -----------------------------------------------------------------------------------------------------


class Token:
    """As autogen_core.CancellationToken."""

    def __init__(self):
        self.futures, self.done = [], False

    def is_cancelled(self):
        return self.done

    def cancel(self):
        self.done = True
        for future in self.futures:
            future.cancel()

    def link_future(self, future):
        self.futures.append(future)
        if self.done:
            future.cancel()


class Block:
    """As autogen_core.code_executor.CodeBlock."""

    def __init__(self, code, language):
        self.code, self.language = code, language


class StandInTool:
    """As much of langchain_core.tools.StructuredTool as there has to be."""

    def __init__(self, func, coroutine, options):
        self.func, self.coroutine, self.options = func, coroutine, options

    @classmethod
    def from_function(cls, func=None, coroutine=None, **options):
        return cls(func, coroutine, options)

    def invoke(self, arguments):
        try:
            return self.func(**arguments)
        except StandInException as error:
            if not self.options["handle_tool_error"]:
                raise
            return str(error)


class StandInException(Exception):
    pass


@contextlib.contextmanager
def standing_in(**modules):
    """While modules of these names (a__b is a.b) are others."""
    names = {name.replace("__", "."): module for name, module in modules.items()}
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


# ---- smolagents ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def steps(**options):
    executor = smolagents.PythonExecutor(BEST, **options)
    try:
        yield executor
    finally:
        executor.cleanup()


@test("smolagents: output, logs, variables and tools")
def _():
    asked = []
    with steps(timeout=20) as executor:
        executor.send_variables({"n": 5, "table": {"a": (1, 2)}})
        executor.send_tools({"search": lambda query, most=1: asked.append(query) or [query] * most})
        done = executor("print('hello')\nfound = search('x', most=n)\nfound[:2]")
        check_equal((done.output, done.logs, done.is_final_answer), (["x", "x"], "hello\n", False), "a step")
        check_equal((asked, executor("len(found) + table['a'][1]").output), (["x"], 7), "variables stay, tools are not asked again")
        executor.send_variables({"n": 50})
        check_equal(executor("n").output, 50, "a variable that is sent again")
        executor.send_tools({})
        check_in("NameError", str(raises(vitro.ToolError, executor, "search('y')")), "a tool that is taken away")


@test("smolagents: final_answer ends the step, also where the code catches exceptions")
def _():
    with steps() as executor:
        executor.send_tools({"final_answer": lambda answer: {"answer": answer}})
        done = executor("x = 6\ntry:\n    final_answer(x * 7)\nexcept Exception:\n    pass\nx = 0")
        check_equal((done.output, done.is_final_answer), ({"answer": 42}, True), "the answer")
        check_equal(executor("x").output, 6, "what it left")
        done = executor("import asyncio\nawait asyncio.sleep(0)\nfinal_answer('later')")
        check_equal((done.output, done.is_final_answer), ({"answer": "later"}, True), "behind an await")
        error = raises(vitro.ToolError, executor, "final_answer(object())")
        check_in("object", str(error), "what is no data")


@test("smolagents: modules, functions, lambdas and classes stay; what cannot is told once")
def _():
    with steps() as executor:
        executor("""import math, json as j, os.path
from dataclasses import dataclass
N = 2
@dataclass
class Point:
    x: int
    def double(self):
        return Point(self.x * N)
def area(r, power=N):
    return round(math.pi * r ** power, 2)
async def later(n):
    return n + 1
half = lambda n: n / 2
points = [Point(1)]
same = points
""")
        done = executor("same.append(points[0].double())\n"
                        "[area(1), half(3), points[1].x, len(points), j.dumps([1]), os.path.basename('/a/b'), await later(1)]")
        check_equal(done.output, [3.14, 1.5, 2, 2, "[1]", "b", 2], "all of it")
        done = executor("lines = (line for line in 'ab')\nhandle = open('/dev/null')\nnext(lines)")
        check_equal((done.output, done.logs), ("a", "(not kept for the next step: handle, lines)\n"), "what is not kept")
        check_equal(executor("1").logs, "", "once")
        check_in("NameError", str(raises(vitro.ToolError, executor, "lines")), "it is gone")
        executor("area = 5\ndel half")
        check_equal(executor("[area, 'half' in globals()]").output, [5, False], "names that mean something else by now")
        check_equal(executor("points").output, "[Point(x=1), Point(x=2)]", "an output that is no data is its text")


@test("smolagents: a step that raises keeps what it did, one that is ended does not")
def _():
    with steps(timeout=1.5) as executor:
        error = raises(vitro.ToolError, executor, "x = 1\nprint('so far')\ndef f():\n    return {}['k']\nf()")
        check_equal(str(error), "Code execution failed at line 'f()' due to: KeyError: 'k'", "what the model reads")
        check_in("line 4, in f", error.result.error.traceback, "its traceback")
        check_equal(executor.state["_print_outputs"], "so far\n", "where the agent looks for it")
        check_equal(executor("x").output, 1, "what it did")
        error = raises(vitro.ToolError, executor, "f()")
        check_in('File "<step 1>", line 4, in f\n    return {}[', error.result.error.traceback, "lines of an earlier step")
        check_in("SyntaxError", str(raises(vitro.ToolError, executor, "x = = 1")), "what is no code")
        check_in("SystemExit", str(raises(vitro.ToolError, executor, "x = 2\nraise SystemExit(3)")), "an exit")
        executor.send_variables({"fresh": 7})
        raises(vitro.Timeout, executor, "x = 9\nwhile True: pass")
        raises((vitro.NoResult, vitro.Crashed), executor, "import os\nos._exit(0)")
        check_equal(executor("[x, fresh]").output, [2, 7], "as before, and what was to be sent is still")


@test("smolagents: what a cell tells is read as data alone")
def _():
    with folder() as place, steps() as executor:
        mark = os.path.join(place, "mark")
        # The code puts bytes of its own in the place of its variables: unpickling them makes a file.
        executor(f"""import sys, pickle
class Evil:
    def __reduce__(self):
        return open, ({mark!r}, "w")
data = pickle.dumps(Evil())
sys.modules["_vitro_steps"].save = lambda *_: (data, [])
""")
        check_equal(executor._kept[:1], b"\x80", "it is carried")
        carried = executor._kept
        output = executor("x = 1\nx")  # the cell cannot make it either: its folder is not there
        check_equal(output.output, 1, "the step begins afresh")
        check_in("all that the steps before it left, which cannot be read (", output.logs, "what is told")
        check_equal((executor("x + 1").output, executor.state["_print_outputs"]), (2, ""), "and the next one is as any other")
        check(not os.path.exists(mark), "nothing was unpickled here")
        pickle.loads(carried).close()
        check(os.path.exists(mark), "control: unpickling it makes the file")
        for told in ("5", "{}", "{'state': 5, 'final': True, 'lost': [], 'error': None, 'output': 1}",
                     "{'state': b'', 'final': False, 'lost': [5], 'error': None, 'output': 1}",
                     "{'state': b'', 'final': False, 'lost': [], 'error': {'type': 5}, 'output': 1}"):
            result = vitro.Result("c", "ok", value=eval(told))
            check_in("broke", str(raises(vitro.NoResult, smolagents._check, result)), told)


@test("smolagents: long output is cut, variables that cannot be sent are refused, cleanup ends it")
def _():
    with steps(max_print_outputs_length=100, additional_functions={"double": lambda n: n * 2}) as executor:
        logs = executor("print('a' * 500, 'end')").logs
        check(len(logs) < 200 and logs.startswith("aaa") and logs.endswith("end\n"), logs)
        check_in("left out", logs, "it says so")
        executor.send_tools({})
        check_equal(executor("x = double(4)\nx").output, 8, "additional functions")
        check_in("'lock'", str(raises(vitro.NotSendable, executor.send_variables, {"lock": threading.Lock()})), "which")
        executor.cleanup()
        check_equal(executor("x").output, 8, "variables outlive the sandbox")


# ---- AutoGen -------------------------------------------------------------------------------------------------------


def blocks(*pairs, kind=Block):
    return [kind(code=code, language=language) for language, code in pairs]


async def execute(executor, *pairs, token=None):
    done = await executor.execute_code_blocks(blocks(*pairs), token or Token())
    return done.exit_code, done.output


def need_temporary_folder():
    if os.geteuid() == 0 and is_bare():
        skip("temporary folders of root's are closed to the users of cells here")


@test("autogen: blocks run in their order until one fails")
def _():
    need_temporary_folder()
    async def work():
        async with autogen.CodeExecutor(policy=BEST, timeout=10) as executor:
            check_equal(await execute(executor, ("python", "print(1)"), ("sh", "echo two"), ("Python3", "print(3)")),
                        (0, "1\ntwo\n3\n"), "three")
            code, output = await execute(executor, ("bash", "echo a; exit 3"), ("python", "print('never')"))
            check_equal((code, output), (3, "a\n"), "a failure ends it")
            code, output = await execute(executor, ("python", "print('b')\n1/0"))
            check(code == 1 and output.startswith("b\n") and "ZeroDivisionError: division by zero" in output, output)
            check_equal(await execute(executor, ("cobol", "x")), (1, "\nunknown language cobol"), "no such language")
            for word, want in (("", (0, "")), ("0", (0, "")), ("7", (7, "")), ("-1", (255, "")), ("'no'", (1, "no\n"))):
                check_equal(await execute(executor, ("python", f"import sys\nsys.exit({word})")), want, f"sys.exit({word})")
            check_equal(await execute(executor, ("python", "object()")), (0, ""), "a last expression that is no plain value")
            check_equal(await execute(executor), (0, ""), "none")

    asyncio.run(work())


@test("autogen: a timeout, a cancelled token, a cancelled task, and restarts")
def _():
    need_temporary_folder()
    async def work():
        executor = autogen.CodeExecutor(policy=BEST, timeout=0.5)
        code, output = await execute(executor, ("python", "print('a', flush=True)\nwhile True: pass"))
        check(code == 124 and output.endswith("Timeout"), output)
        check_equal((await execute(executor, ("sh", "sleep 9")))[0], 124, "of a command")
        await executor.stop()
        executor, token = autogen.CodeExecutor(policy=BEST), Token()
        await execute(executor, ("python", "1"))
        start = time.monotonic()
        asyncio.get_running_loop().call_later(0.2, token.cancel)
        check_equal(await execute(executor, ("sh", "sleep 30"), ("sh", "echo no"), token=token), (125, "\nCancelled"), "a token")
        task = asyncio.ensure_future(execute(executor, ("sh", "sleep 30")))
        await asyncio.sleep(0.2)
        task.cancel()
        try:
            await task
            check(False, "it was not cancelled")
        except asyncio.CancelledError:
            pass
        check(time.monotonic() - start < 15, "at once")
        await executor.restart()
        check_equal(await execute(executor, ("python", "print('again')")), (0, "again\n"), "after a restart")
        await executor.stop()
        await executor.stop()

    asyncio.run(work())
    raises(ValueError, autogen.CodeExecutor, timeout=0)


@test("autogen: blocks share work_dir, or a temporary folder, and nothing else")
def _():
    need_temporary_folder()
    async def work(place):
        async with autogen.CodeExecutor(policy=BEST, work_dir=place) as executor:
            check_equal(await execute(executor, ("python", "open('a.txt', 'w').write('hi')"), ("sh", "cat a.txt")), (0, "hi"), "it")
            check_equal(await execute(executor, ("python", "open('helper.py', 'w').write('x = 5')"),
                                      ("python", "import helper\nprint(helper.x)")), (0, "5\n"), "modules there")
        async with autogen.CodeExecutor(policy=BEST) as executor:
            code, own = await execute(executor, ("sh", "echo x > a.txt"), ("sh", "ln -s / link; cat a.txt; pwd"))
            check(code == 0 and own.startswith("x\n") and os.path.isdir(own[2:-1]), own)
        check(not os.path.exists(own[2:-1]), "a temporary folder is left")

    with folder() as place:
        os.chmod(place, 0o777)
        asyncio.run(work(place))
        check_equal(open(os.path.join(place, "a.txt")).read(), "hi", "afterwards")


@test("autogen: a temporary folder goes, whatever blocks left there, also at the end of a program that stops nothing")
def _():
    need_temporary_folder()
    leave = "import os\nos.makedirs('shut/in')\nos.chmod('shut', 0)\nfor _ in range(1200):\n    os.mkdir('a' * 9)\n    os.chdir('a' * 9)"
    program = f"""
import asyncio, os, sys
from vitro.adapters import autogen
class Block:
    language, code = "python", sys.argv[1]
async def work():
    global executor
    executor = autogen.CodeExecutor(policy={BEST!r}, timeout=20)
    print((await executor.execute_code_blocks([Block], None)).exit_code)
    Block.code = "import time; time.sleep(9)"
    task = asyncio.ensure_future(executor.execute_code_blocks([Block], None))
    await asyncio.sleep(0.3)
    if sys.argv[2] == "stop":
        await executor.stop()
loop = asyncio.new_event_loop()
loop.run_until_complete(work())
"""
    with folder() as place:
        os.chmod(place, 0o777)
        for how in ("stop", "end"):
            done = subprocess.run([sys.executable, "-c", program, leave, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, env={**os.environ, "TMPDIR": place, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
            check_equal((done.stdout, os.listdir(place)), ("0\n", []), f"{how}: {done.stderr}")


@test("autogen: a policy's name is extended by the folder")
def _():
    check_equal(autogen._with_folder("strict", "/x"), {"extends": "strict", "files": {"write": ["/x"], "cwd": "/x"}}, "a named policy")


# ---- LangChain -----------------------------------------------------------------------------------------------------


@test("langchain: a function as a tool, whose failures are ToolExceptions")
def _():
    stand_in = types.SimpleNamespace(StructuredTool=StandInTool, ToolException=StandInException)
    with standing_in(langchain_core=types.SimpleNamespace(), langchain_core__tools=stand_in):
        made = langchain.tool(policy=BEST, timeout=9, name="count")(kept.count_words)
        check_equal((made.invoke({"text": "a bb ccc", "least": 2}), made.options),
                    (2, {"handle_tool_error": True, "name": "count"}), "it")
        check_equal(made.invoke({"text": ""}), "ValueError: there is no text", "a failure as text")
        raises(StandInException, langchain.tool(kept.count_words, policy=BEST, handle_tool_error=False).invoke, {"text": ""})
        later = langchain.tool(kept.count_later, policy=BEST)
        check_equal((later.func, asyncio.run(later.coroutine(text="a b"))), (None, 2), "a coroutine function")
        with vitro.Sandbox(BEST) as sandbox:
            python = langchain.code_tool(sandbox, tools={"double": lambda n: n * 2}, timeout=5)
            check_equal(python.invoke({"code": "print('a')\ndouble(21)"}), "a\n42", "code")
            check_equal(python.invoke({"code": "print('a')"}), "a\n", "without a value")
            told = python.invoke({"code": "print('a')\n1/0"})
            check(told.startswith("a\nTraceback") and "ZeroDivisionError" in told, told)
            check_in("Timeout", langchain.code_tool(sandbox, timeout=0.3).invoke({"code": "while True: pass"}), "a deadline")


@test("langchain: without it, what is missing is named")
def _():
    if importlib.util.find_spec("langchain_core"):
        skip("it is installed here")
    for act in (lambda: langchain.tool(kept.count_words), langchain.code_tool):
        error = raises(ModuleNotFoundError, act)
        check_equal((str(error), error.name), ("vitro.adapters.langchain needs langchain-core: pip install langchain-core", "langchain_core"),
                    "what to install")


# ---- E2B -----------------------------------------------------------------------------------------------------------


def executions():
    with vitro.Sandbox(BEST) as sandbox:
        for code in ("print('out')\nimport sys\nprint('err', file=sys.stderr)\n{'a': [1]}", "x = 1", "print('a')\n{}['k']",
                     "while True: pass", "'text'"):
            yield sandbox.eval(code, result=True, timeout=0.5)


@test("e2b: a result as an Execution")
def _():
    full, empty, failed, late, text = map(e2b.execution, executions())
    check_equal((full.text, full.results[0].value, full.error), ("{'a': [1]}", {"a": [1]}, None), "a value")
    check_equal((full.logs.stdout, full.logs.stderr), (["out\n"], ["err\n"]), "logs")
    check_equal((full.results[0].png, full.results[0]["text"], full.results[0].formats()), (None, "{'a': [1]}", ["text"]), "formats")
    raises(AttributeError, lambda: full.results[0].other)
    check_equal((empty.text, empty.results, empty.error), (None, [], None), "no value")
    check_equal((failed.error.name, failed.error.value, failed.text), ("KeyError", "'k'", None), "a failure")
    check_in("line 2", failed.error.traceback, "its traceback")
    check_equal((late.error.name, bool(late.error.traceback)), ("Timeout", True), "a deadline")
    check_equal(text.text, "'text'", "as a prompt prints it")
    check_equal(json.loads(json.loads(failed.to_json())["error"])["name"], "KeyError", "JSON")


# ---- the frameworks themselves -------------------------------------------------------------------------------------


def real(name, package):
    """Registers a test with a framework."""
    def register(function):
        def run():
            if not os.access(os.path.join(pythons.FRAMEWORKS, package), os.R_OK):
                skip(f"{package} is not in {pythons.FRAMEWORKS}, or cannot be read there; tools/setup test fetches it")
            if pythons.FRAMEWORKS not in sys.path:
                sys.path.insert(0, pythons.FRAMEWORKS)
            function()
        if pythons.are_frameworks_for_this():
            test(name)(run)
        return function
    return register


STEPS = ["import math\nradius = 2\nprint('step one')\nradius",
         "def area(r):\n    return round(math.pi * r ** 2, 2)\nfound = lookup(city='Bern')\nprint(found)\narea(radius)",
         "names = [n.upper() for n in found]\nnames.append(str(area(1)))\nnames",
         "1 / 0",
         "final_answer({'names': names, 'area': area(radius)})"]


@real("smolagents itself: an agent with a scripted model gets the same from its own executor and from this one", "smolagents")
def _():
    from smolagents import CodeAgent, LogLevel, Model, tool
    from smolagents.local_python_executor import LocalPythonExecutor, PythonExecutor
    from smolagents.models import ChatMessage, MessageRole

    class Scripted(Model):
        def __init__(self):
            super().__init__(model_id="scripted")
            self.answers, self.asked = iter(STEPS), []

        def generate(self, messages, **_):
            self.asked.append(messages)
            return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: next.\n<code>\n{next(self.answers)}\n</code>")

    @tool
    def lookup(city: str) -> list:
        """Looks up a city.

        Args:
            city: its name
        """
        asked.append(city)
        return [city, "canton"]

    seen = []
    for make in (lambda: LocalPythonExecutor([]), lambda: smolagents.PythonExecutor(BEST)):
        asked, executor = [], make()
        check(isinstance(executor, PythonExecutor), "it is one")
        agent = CodeAgent(tools=[lookup], model=Scripted(), executor=executor, verbosity_level=LogLevel.OFF, max_steps=8)
        answer = agent.run("what?", additional_args={"extra": [1, 2]})
        memory = [(step.action_output, (step.observations or "").replace("\n", ""), step.error and "ZeroDivisionError" in str(step.error))
                  for step in agent.memory.steps if hasattr(step, "action_output")]
        seen.append((answer, asked, memory, executor("extra").output))
        agent.cleanup()
    check_equal(seen[1], seen[0], "answers, tools, outputs, logs, errors, variables")
    check_equal(seen[0][0], {"names": ["BERN", "CANTON", "3.14"], "area": 12.57}, "the answer")


@real("autogen itself: the same as its local executor, and its tool takes it", "autogen_core")
def _():
    import warnings
    from autogen_core import CancellationToken
    from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
    from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor
    from autogen_ext.tools.code_execution import PythonCodeExecutionTool
    warnings.simplefilter("ignore")
    cases = [[("python", "print(1)"), ("bash", "echo two")], [("sh", "exit 4"), ("python", "print('no')")],
             [("python", "import sys\nsys.exit(5)")], [("fortran", "x")], [("python", "open('f','w').write('x')"), ("sh", "cat f")]]

    async def outcomes(executor):
        found = []
        async with executor:
            for case in cases:
                done = await executor.execute_code_blocks(blocks(*case, kind=CodeBlock), CancellationToken())
                check(isinstance(done, CodeResult), type(done))
                found.append((done.exit_code, done.output))
        return found

    async def work(one, two):
        ours = autogen.CodeExecutor(policy=BEST, work_dir=two, timeout=20)
        check(isinstance(ours, CodeExecutor), "it is one")
        check_equal(await outcomes(ours), await outcomes(LocalCommandLineCodeExecutor(work_dir=one, timeout=20)), "the same")
        tool = PythonCodeExecutionTool(ours)
        done = await tool.run_json({"code": "print(6 * 7)"}, CancellationToken())
        check_equal((done.success, done.output), (True, "42\n"), "by its tool")
        done = await tool.run_json({"code": "1 / 0"}, CancellationToken())
        check(not done.success and "ZeroDivisionError" in done.output, done.output)
        token = CancellationToken()
        asyncio.get_running_loop().call_later(0.3, token.cancel)
        done = await ours.execute_code_blocks([CodeBlock(code="sleep 30", language="sh")], token)
        check_equal((done.exit_code, done.output), (125, "\nCancelled"), "its token")
        await ours.stop()

    with folder() as one, folder() as two:
        os.chmod(two, 0o777)
        asyncio.run(work(one, two))


@real("langchain itself: schemas, calls by a model, and failures", "langchain_core")
def _():
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import BaseTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    made = langchain.tool(policy=BEST, parse_docstring=True)(kept.count_words)
    check(isinstance(made, BaseTool), type(made))
    schema = convert_to_openai_tool(made)["function"]
    check_equal((schema["name"], schema["parameters"]["required"], schema["parameters"]["properties"]["least"]["type"]),
                ("count_words", ["text"], "integer"), "its schema")
    check_equal(made.invoke({"text": "a bb ccc", "least": 2}), 2, "a call")
    check_equal(asyncio.run(made.ainvoke({"text": "a b"})), 2, "from a loop")
    message = made.invoke({"name": "count_words", "args": {"text": ""}, "id": "1", "type": "tool_call"})
    check(isinstance(message, ToolMessage), type(message))
    check_equal((message.content, message.status), ("ValueError: there is no text", "error"), "a failure")
    later = langchain.tool(kept.count_later, policy=BEST)
    check_equal(asyncio.run(later.ainvoke({"text": "a b c"})), 3, "a coroutine function")
    with vitro.Sandbox(BEST) as sandbox:
        python = langchain.code_tool(sandbox)
        check_equal(python.invoke({"code": "sum(range(4))"}), "6", "code")
        message = python.invoke({"name": "python", "args": {"code": "1/0"}, "id": "2", "type": "tool_call"})
        check(message.status == "error" and "ZeroDivisionError" in message.content, message)


@real("e2b itself: its Execution of the same shows the same", "e2b_code_interpreter")
def _():
    theirs = load_e2b()
    for result in executions():
        ours = e2b.execution(result)
        made = theirs.Execution(
            results=[theirs.Result(text=one.text, is_main_result=True) for one in ours.results],
            logs=theirs.Logs(stdout=ours.logs.stdout, stderr=ours.logs.stderr),
            error=ours.error and theirs.ExecutionError(ours.error.name, ours.error.value, ours.error.traceback))
        check_equal((ours.text, ours.to_json(), ours.logs.to_json()), (made.text, made.to_json(), made.logs.to_json()), "it")
        for mine, other in zip(ours.results, made.results):
            check_equal((mine.formats(), str(mine)), (other.formats(), str(other)), "a result")
            for name in vars(other):
                check_equal(getattr(mine, name), getattr(other, name), name)
        for name in vars(made):
            check(hasattr(ours, name), f"there is no {name}")


def load_e2b():
    """Its models alone: what it needs to reach a server, which it has much of, is not fetched."""
    names = types.SimpleNamespace(NotFoundException=OSError, TimeoutException=OSError, SandboxException=OSError)
    package = types.ModuleType("e2b_code_interpreter")
    package.__path__ = [os.path.join(pythons.FRAMEWORKS, "e2b_code_interpreter")]
    with standing_in(e2b=names, httpx=types.SimpleNamespace(Response=object), e2b_code_interpreter=package):
        return importlib.import_module("e2b_code_interpreter.models")


pythons.main("system", "oldest")
