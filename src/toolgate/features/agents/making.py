"""Models as toolgate.yaml names them: which persona has which, made when first used, keys looked up by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from toolgate.agents.models import Model, ModelSettings
from toolgate.core.errors import ConfigError, NotAllowed, SetupError
from toolgate.features.agents.config import ModelSpec
from toolgate.project.config import environment

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext

HOSTS = {"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com"}
WIRES = {"openai": "openai", "anthropic": "anthropic", "scripted": "xml"}


class Models:
    def __init__(self, context: FeatureContext) -> None:
        self._context = context
        self._made: dict[tuple[str, str], Model] = {}
        self.given: dict[str, Model] = {}
        """Models that a program or a test brings itself, by name."""
        context.stack.push_async_callback(self.close)

    def of(self, persona: str) -> str:
        """The name of a persona's model."""
        agents, models = self._context.section("agents"), self._context.section("models")
        found = agents.personas.get(persona) or agents.model
        if found is None:
            known = [*models, *self.given]
            if len(known) != 1:
                raise SetupError(
                    f"toolgate.yaml does not say which model {persona} has",
                    f"name one with `agents: {{model: …}}`, out of: {', '.join(known)}"
                    if known
                    else 'there is none yet: add `models: {local: {kind: openai, model: …, base_url: "http://…/v1"}}`',
                )
            found = known[0]
        self.spec(found)
        return str(found)

    def spec(self, name: str) -> ModelSpec:
        if name in self.given:
            return ModelSpec.model_construct(
                kind="scripted", script="-", wire=cast(Any, self.given[name].wire)
            )
        models = self._context.section("models")
        if name not in models:
            raise SetupError(
                f"there is no model {name[:80]!r}",
                f"`models:` in toolgate.yaml has: {', '.join(models) or 'none'}",
            )
        found: ModelSpec = models[name]
        return found

    def scripted(self, name: str) -> bool:
        """Whether no model is behind it, only a script: faces say so."""
        return self.spec(name).kind == "scripted"

    def wire(self, name: str) -> str:
        spec = self.spec(name)
        return spec.wire or WIRES[spec.kind]

    def get(self, name: str) -> Model:
        if name in self.given:
            return self.given[name]
        spec = self.spec(name)
        key = (name, spec.model_dump_json())
        if key not in self._made:
            self._made[key] = self._make(name, spec)
        return self._made[key]

    def ready(self, name: str) -> None:
        """Raises where it could not be made: its script cannot be read, its key is nowhere or for other hosts."""
        spec = self.spec(name)
        if spec.kind == "scripted" and name not in self.given:
            self._script(spec)
        elif spec.kind != "scripted":
            self._key(name, spec)

    def _make(self, name: str, spec: ModelSpec) -> Model:
        if spec.kind == "scripted":
            from toolgate.agents.models.scripted import ScriptedModel

            return ScriptedModel(self._script(spec), name, spec.wire or "xml", spec.usd_per_million)
        settings = ModelSettings(
            model=spec.model or name, key=self._key(name, spec), base_url=spec.base_url or "", wire=self.wire(name),
            timeout_s=spec.timeout_s, retries=spec.retries, max_tokens=spec.max_tokens, temperature=spec.temperature,
            usd_per_million=spec.usd_per_million,
        )  # fmt: skip
        if spec.kind == "openai":
            from toolgate.agents.models.openai import OpenAIModel

            return OpenAIModel(settings)
        from toolgate.agents.models.anthropic import AnthropicModel

        return AnthropicModel(settings)

    def _script(self, spec: ModelSpec) -> Any:
        from toolgate.project import yamlfile

        path = self._context.root / str(spec.script)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the script cannot be read: {error}", "name a text file of the project"
            ) from None
        return yamlfile.read(text, str(path)).data

    def _key(self, name: str, spec: ModelSpec) -> str:
        """From the vault, else from the environment. A local server may want none."""
        if spec.key is None:
            return ""
        vault = self._context.vault
        secret = vault.get(spec.key) if vault is not None else None
        if secret is not None:
            host = urlsplit(spec.base_url or HOSTS[spec.kind]).netloc
            if secret.hosts and not secret.fits(host):
                raise NotAllowed(
                    f"the secret {spec.key} may not be sent to {host}, which the model {name} would do",
                    f"`toolgate secrets set {spec.key} --host {host}`",
                )
            return secret.value
        found = environment().get(spec.key)
        if found is None:
            raise ConfigError(
                f"the key {spec.key} of the model {name} is neither in the vault nor in the environment",
                f"`toolgate secrets set {spec.key}`",
            )
        return found

    async def close(self) -> None:
        for model in self._made.values():
            await model.close()
