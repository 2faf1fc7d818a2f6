"""The model that the settings ask for; it wires, and calls none."""

import random
from collections.abc import Mapping

from bots.settings import Settings, secrets_of
from core.models.choice import DEMO, Choice, choose
from core.models.demo import DemoModel
from core.models.litellm import LiteLLMModel, Options
from core.models.litellm_speech import LiteLLMTranscriber, SpeechOptions
from core.ports import Clock, Model


def chosen(settings: Settings, environment: Mapping[str, str]) -> Choice:
    return choose(settings.model or None, environment)


def build_model(
    settings: Settings, environment: Mapping[str, str], clock: Clock
) -> DemoModel | LiteLLMModel:
    name = chosen(settings, environment).name
    if name == DEMO:
        return DemoModel(clock.sleep, settings.context_window)
    options = Options(
        name=name,
        fallbacks=settings.model_fallbacks,
        sees=settings.sees,
        window=settings.context_window,
        secrets=tuple(secrets_of(environment, frozenset())),
    )
    return LiteLLMModel(options, clock.sleep, random.Random())  # noqa: S311 (jitter)


def build_summary_model(
    settings: Settings, environment: Mapping[str, str], clock: Clock, model: Model
) -> Model:
    """The same one, where no other is named."""
    if settings.summary_model in ("", model.name):
        return model
    if settings.summary_model == DEMO:
        return DemoModel(clock.sleep)
    secrets = tuple(secrets_of(environment, frozenset()))
    options = Options(name=settings.summary_model, variable="SUMMARY_MODEL", secrets=secrets)
    return LiteLLMModel(options, clock.sleep, random.Random())  # noqa: S311 (jitter)


def build_transcriber(
    settings: Settings, environment: Mapping[str, str], clock: Clock
) -> LiteLLMTranscriber | None:
    if not settings.transcribe_model:
        return None
    secrets = tuple(secrets_of(environment, frozenset()))
    options = SpeechOptions(name=settings.transcribe_model, secrets=secrets)
    return LiteLLMTranscriber(options, clock.sleep)
