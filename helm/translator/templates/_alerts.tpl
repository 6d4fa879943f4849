{{/*
The alerts, for the pods of this release only. docs/runbooks/translator.md has a section for each, with its name.
*/}}
{{- define "translator.alerts" -}}
{{- $pods := printf "namespace=%q,pod=~%q" .Release.Namespace (printf "%s-.+" (include "translator.fullname" .)) -}}
{{- $runbook := printf "%s/translator.md" (include "translator.runbooks" .) -}}
{{- if or .Values.scaledObject.enabled (gt (int .Values.replicas) 0) }}
- alert: TranslatorDown
  expr: absent(cdc_build_info{ {{- $pods -}} })
  for: 10m
  labels: {severity: critical}
  annotations:
    summary: No pod of the translator responds
    runbook_url: {{ $runbook }}#translatordown
{{- end }}
- alert: TranslatorStalled
  expr: >-
    sum by (pod) (cdc_batches_in_flight{ {{- $pods -}} }) > 0
    unless sum by (pod) (rate(cdc_records_in_total{ {{- $pods -}} }[10m])) > 0
  for: 10m
  labels: {severity: critical}
  annotations:
    summary: '{{ `{{ $labels.pod }} has read records but acknowledges none` }}'
    runbook_url: {{ $runbook }}#translatorstalled
- alert: TranslatorBehind
  expr: max by (source) (cdc_partition_lag_seconds{ {{- $pods -}} }) > {{ .Values.prometheusRule.lagSeconds }}
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: '{{ `Raw records of source {{ $labels.source }} have been waiting for {{ $value | humanizeDuration }}` }}'
    runbook_url: {{ $runbook }}#translatorbehind
- alert: TranslatorLag
  expr: >-
    max by (source) (cdc_source_lag_seconds{ {{- $pods -}} }) > {{ .Values.prometheusRule.lagSeconds }}
    and sum by (source) (increase(cdc_records_in_total{ {{- $pods -}} }[10m])) > 0
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: '{{ `Events of source {{ $labels.source }} arrive {{ $value | humanizeDuration }} after their commit` }}'
    runbook_url: {{ $runbook }}#translatorlag
- alert: TranslatorDeadLetters
  expr: >-
    {{- include "translator.grew" (dict "metric" "cdc_records_dead_total" "pods" $pods "by" "source, code") | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `Dead letters of source {{ $labels.source }}: {{ $labels.code }}` }}'
    runbook_url: {{ $runbook }}#translatordeadletters
- alert: TranslatorProjectionRefused
  expr: >-
    {{- include "translator.grew" (dict "metric" "cdc_records_refused_total" "pods" $pods "by" "source, output, code") | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `Topic {{ $labels.output }} lacks events of {{ $labels.source }}: {{ $labels.code }}` }}'
    runbook_url: {{ $runbook }}#translatorprojectionrefused
- alert: TranslatorPartitionStopped
  expr: max by (source, topic, partition, code) (cdc_partition_stopped{ {{- $pods -}} }) > 0
  for: 1m
  labels: {severity: critical}
  annotations:
    summary: '{{ `Partition {{ $labels.topic }}/{{ $labels.partition }} of source {{ $labels.source }} is stopped: {{ $labels.code }}` }}'
    runbook_url: {{ $runbook }}#translatorpartitionstopped
- alert: TranslatorTablesHeld
  expr: sum(cdc_tables_held{ {{- $pods -}} }) > 0
  for: 5m
  labels: {severity: warning}
  annotations:
    summary: '{{ `{{ $value }} tables are held until a dead letter is replayed` }}'
    runbook_url: {{ $runbook }}#translatortablesheld
- alert: TranslatorWaitsForMetadata
  expr: sum by (pod) (cdc_partitions_waiting{ {{- $pods -}} }) > 0
  for: 15m
  labels: {severity: warning}
  annotations:
    summary: '{{ `{{ $value }} partitions wait for the metadata of their next record` }}'
    runbook_url: {{ $runbook }}#translatorwaitsformetadata
- alert: TranslatorMetadataConflict
  expr: >-
    {{- include "translator.grew" (dict "metric" "cdc_metadata_conflicts_total" "pods" $pods "by" "source") | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `Metadata of source {{ $labels.source }} is contradictory` }}'
    runbook_url: {{ $runbook }}#translatormetadataconflict
- alert: TranslatorStatementNotApplied
  expr: >-
    {{- include "translator.grew" (dict "metric" "cdc_statements_not_applied_total" "pods" $pods "by" "source, table, note") | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `Rows of {{ $labels.table }} in source {{ $labels.source }} changed without events: {{ $labels.note }}` }}'
    runbook_url: {{ $runbook }}#translatorstatementnotapplied
- alert: TranslatorNativePathDisabled
  expr: max by (source) (cdc_native_path_disabled{ {{- $pods -}} }) > 0
  labels: {severity: warning}
  annotations:
    summary: '{{ `The native path and the plain path differ for source {{ $labels.source }}; the plain path is used` }}'
    runbook_url: {{ $runbook }}#translatornativepathdisabled
- alert: TranslatorRebalances
  expr: sum by (pod) (increase(cdc_rebalances_total{ {{- $pods -}} }[30m])) > 5
  labels: {severity: warning}
  annotations:
    summary: '{{ `{{ $labels.pod }} lost its partitions {{ $value | humanize }} times in half an hour` }}'
    runbook_url: {{ $runbook }}#translatorrebalances
{{- end -}}
