/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-WKLHS63G.js";import"./chunk-ABUTQEI5.js";import"./chunk-A256LNS2.js";import"./chunk-UICSGFSY.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
