/**
 * Each test file starts without series. The files of a worker share one module cache, and with it the registry of metrics
 * that is used where none is provided: a file would find the counts of the files before it.
 */
import { Context, Metric } from "effect"

Context.get(Context.empty(), Metric.MetricRegistry).clear()
