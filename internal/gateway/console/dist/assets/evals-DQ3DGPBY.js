/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-2OZJP4WY.js";import"./chunk-2FQV5QLT.js";import"./chunk-PNIJ2T6U.js";import"./chunk-RU6475AT.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
