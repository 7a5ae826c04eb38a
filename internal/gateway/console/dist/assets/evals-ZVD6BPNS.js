/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-3ZEH6TG4.js";import"./chunk-PDF7NQIQ.js";import"./chunk-WAKQEYGT.js";import"./chunk-XTQSOOOX.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
